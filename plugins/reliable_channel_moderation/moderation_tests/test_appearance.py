"""One text in forty dresses is one text, and ordinary messages in twenty languages are many."""

# ruff: noqa: RUF001 - look-alikes are what this is about

import unicodedata
from itertools import product
from typing import Final

import pytest

from reliable_channel_moderation import Judge, Policy, Rule, Seen
from reliable_channel_moderation.appearance import MAX_CHARACTERS, appearance, looks_latin, plain
from reliable_channel_moderation.links import why_not_allowed

NOW_MS: Final = 1_700_000_000_000
TEXT: Final = "free coins for everybody now"
CYRILLIC: Final = str.maketrans("aeocpxyi", "аеосрхуі")
GREEK: Final = str.maketrans("ov", "ον")
INVISIBLE: Final = (
    "\u034f\ufe00\ufe0f\U000e0020\U000e0061\u3164\u180e\u061c\u2800\u2066\u2069\u200b\u2060\u00ad"
)


def styled(first: str) -> str:
    """The text in mathematical letters that begin with one."""
    shift = ord(first) - ord("a")
    return "".join(chr(ord(one) + shift) if one.isalpha() else one for one in TEXT)


VARIATIONS: Final = (
    *(TEXT.replace("o", f"o{mark}") for mark in INVISIBLE),  # 14
    *(f"{TEXT} {number}" for number in (1, 7, 42, "#5", "(99)", "№ 3")),
    TEXT.translate(CYRILLIC),
    TEXT.translate(GREEK),
    TEXT.upper().translate(str.maketrans("ACEOPXBHKMT", "АСЕОРХВНКМТ")),
    TEXT.replace("e", "е").replace("o", "о") + " 8",
    *(TEXT.replace("e", f"e{mark}") for mark in ("\u0301", "\u0336", "\u0489", "\u20dd")),
    "".join(one + "\u0335\u0323" for one in TEXT),  # zalgo
    *map(styled, "𝐚𝑎𝖺𝚊𝒂"),
    "".join(chr(ord(one) + 0xFEE0) if one.isalpha() else one for one in TEXT),
    TEXT.upper(),
    TEXT.title().replace(" ", "   "),
    f"\n{TEXT}!!!",
    TEXT.replace("i", "1").replace("o", "0"),
    TEXT.replace("c", "ⅽ").replace("o", "ᴏ"),
)
LANGUAGES: Final = (
    (
        "The {} was very good today",
        "Where can I buy {}?",
        "We like {} on Sunday",
        "No {} for me, thanks",
        "My {} is late again",
        "tea bread train music weather coffee garden meeting ticket lunch",
    ),
    (
        "Der {} war heute sehr gut",
        "Wo kann ich {} kaufen?",
        "Am Sonntag mögen wir {}",
        "Für mich kein {}, danke",
        "Mein {} ist wieder zu spät",
        "Tee Brot Zug Film Kaffee Garten Termin Fisch Honig Kuchen",
    ),
    (
        "Le {} était très bon",
        "Où est-ce que je trouve du {} ?",
        "Le dimanche on aime le {}",
        "Pas de {} pour moi, merci",
        "Mon {} est encore en retard",
        "thé pain train film café jardin billet déjeuner poisson gâteau",
    ),
    (
        "El {} estuvo muy bien hoy",
        "¿Dónde puedo comprar {}?",
        "El domingo nos gusta el {}",
        "Sin {} para mí, gracias",
        "Mi {} llega tarde otra vez",
        "té pan tren cine café jardín billete almuerzo pescado pastel",
    ),
    (
        "O {} estava muito bom hoje",
        "Onde posso comprar {}?",
        "No domingo gostamos de {}",
        "Sem {} para mim, obrigado",
        "O meu {} está atrasado de novo",
        "chá pão comboio filme café jardim bilhete almoço peixe bolo",
    ),
    (
        "Il {} era molto buono oggi",
        "Dove posso comprare {}?",
        "La domenica ci piace il {}",
        "Niente {} per me, grazie",
        "Il mio {} è di nuovo in ritardo",
        "tè pane treno film caffè giardino biglietto pranzo pesce dolce",
    ),
    (
        "Сегодня {} был очень хорош",
        "Где купить {}?",
        "По воскресеньям мы любим {}",
        "Мне без {}, спасибо",
        "Мой {} опять опаздывает",
        "чай хлеб поезд фильм кофе сад билет обед суп торт",
    ),
    (
        "Сьогодні {} був дуже добрий",
        "Де купити {}?",
        "У неділю ми любимо {}",
        "Мені без {}, дякую",
        "Мій {} знову запізнюється",
        "чай хліб потяг фільм сад квиток обід суп мед торт",
    ),
    (
        "Dzisiaj {} był bardzo dobry",
        "Gdzie mogę kupić {}?",
        "W niedzielę lubimy {}",
        "Dla mnie bez {}, dziękuję",
        "Mój {} znowu się spóźnia",
        "chleb pociąg film ogród bilet obiad miód tort ser sok",
    ),
    (
        "Bugün {} çok güzeldi",
        "Nereden {} alabilirim?",
        "Pazar günü {} severiz",
        "Bana {} olmasın, teşekkürler",
        "Benim {} yine gecikti",
        "çay ekmek tren film kahve bahçe bilet yemek balık pasta",
    ),
    (
        "Το {} ήταν πολύ καλό σήμερα",
        "Πού αγοράζω {};",
        "Την Κυριακή μας αρέσει το {}",
        "Χωρίς {} για μένα, ευχαριστώ",
        "Το {} μου άργησε πάλι",
        "τσάι ψωμί τρένο φιλμ ψάρι μέλι εισιτήριο φαγητό κρασί γλυκό",
    ),
    (
        "היום ה{} היה טוב מאוד",
        "איפה אפשר לקנות {}?",
        "ביום ראשון אנחנו אוהבים {}",
        "בלי {} בשבילי, תודה",
        "ה{} שלי שוב מאחר",
        "תה לחם סרט קפה גן כרטיס דג דבש עוגה יין",
    ),
    (
        "كان {} جيدا جدا اليوم",
        "أين يمكنني شراء {}؟",
        "يوم الأحد نحب {}",
        "بدون {} لي شكرا",
        "تأخر {} مرة أخرى",
        "الشاي الخبز القطار الفيلم السمك العسل الكعك الغداء الحليب الجبن",
    ),
    (
        "امروز {} خیلی خوب بود",
        "از کجا {} بخرم؟",
        "یکشنبه ها {} دوست داریم",
        "برای من {} نباشد ممنون",
        "{} من باز دیر کرد",
        "چای نان قطار فیلم قهوه باغ بلیط ناهار ماهی کیک",
    ),
    (
        "आज {} बहुत अच्छा था",
        "मैं {} कहाँ से खरीदूँ?",
        "रविवार को हमें {} पसंद है",
        "मेरे लिए {} नहीं, धन्यवाद",
        "मेरा {} फिर देर से है",
        "खाना पानी दूध संगीत बगीचा टिकट शहद केक चावल आम",
    ),
    (
        "วันนี้{}ดีมาก",
        "ซื้อ{}ได้ที่ไหน",
        "วันอาทิตย์เราชอบ{}",
        "ไม่เอา{}ขอบคุณค่ะ",
        "{}ของฉันมาช้าอีกแล้ว",
        "ชา ขนมปัง รถไฟ หนัง กาแฟ สวน ตั๋ว อาหารกลางวัน ปลา เค้ก",
    ),
    (
        "Hôm nay {} rất ngon",
        "Tôi mua {} ở đâu?",
        "Chủ nhật chúng tôi thích {}",
        "Không {} cho tôi, cảm ơn",
        "Món {} của tôi lại muộn",
        "trà bánh phim cá mật cơm phở bún sữa chè",
    ),
    (
        "今天的{}非常好吃",
        "请问在哪里可以买到{}？",
        "星期天我们都很喜欢{}",
        "我不要{}，谢谢大家的好意",
        "我的{}今天又来晚了一点",
        "茶 面包 火车 电影 咖啡 花园 车票 午饭 鱼 蛋糕",
    ),
    (
        "今日の{}はとても良かった",
        "{}はどこで買えますか？",
        "日曜日は{}が好きです",
        "私は{}なしでお願いします",
        "私の{}がまた遅れています",
        "お茶 パン 電車 映画 珈琲 庭 切符 昼ご飯 魚 ケーキ",
    ),
    (
        "오늘 {} 정말 좋았어요",
        "{} 어디에서 살 수 있나요?",
        "일요일에는 {} 좋아해요",
        "저는 {} 빼 주세요 감사합니다",
        "제 {} 또 늦었어요",
        "차 빵 기차 영화 커피 정원 표 점심 생선 케이크",
    ),
)
ORDINARY: Final = [
    frame.format(word)
    for *frames, words in LANGUAGES
    for frame, word in product(frames, words.split())
]


def found(texts: list[str], policy: Policy) -> list[Rule]:
    """The rules that messages of one user break, one each 13 s."""
    judge = Judge(policy)
    times = [NOW_MS + 13_000 * number for number in range(len(texts))]
    seen = [Seen("alice", text, 0, at_ms, at_ms) for text, at_ms in zip(texts, times, strict=True)]
    verdicts = [judge.judge(one) for one in seen]
    return [one.rule for one in verdicts if one is not None]


def test_forty_variations_of_one_text_are_found_but_for_the_first_two() -> None:
    assert len(VARIATIONS) == len(set(VARIATIONS)) == 40
    assert found(list(VARIATIONS), Policy()) == [Rule.SPAM] * 38


def test_a_thousand_ordinary_messages_break_no_rule() -> None:
    assert len(LANGUAGES) == 20 and len(ORDINARY) == len(set(ORDINARY)) == 1_000
    policy = Policy(allowed_hosts=frozenset({"status.app"}))
    assert found(ORDINARY, policy) == []
    for form in ("NFC", "NFD"):
        texts = [unicodedata.normalize(form, text) for text in ORDINARY]
        assert found(texts, policy) == []


@pytest.mark.parametrize(
    "text",
    [
        "and/or, 1/2, 24/7, w/o, etc./so on",
        "at 12:30: see you there://",
        "http: and https: are schemes",
        "3.5/5 stars, v1.2.3/4",
        "note:this, a:b, C:\\Users and \\\\server\\share",
        "[status](https://status.app/c) or <https://status.app>, **https://status.app**",
        "// a comment, and /help",
        "mail me: alice@evil.example",
    ],
)
def test_what_is_no_link_is_allowed(text: str) -> None:
    assert why_not_allowed(text, {"status.app"}) is None


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example\\.status.app/",
        "https:evil.example",
        "https:/evil.example",
        "http:///evil.example/",
        "https:\\\\evil.example",
        "see //evil.example/x",
        "evil.example/login",
        "https://status.app／evil.example",
        "https://status.app＃@evil.example",
        "https://[2001:db8::1]/x",
        "https://evil。example/",
        "https://%65vil.example/",
        "https://2130706433/",
        "ftp://evil.example/x",
        "status-app://c/x",
        "ethereum:0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "data:text/html,x",
        "javascript:alert(1)",
    ],
)
def test_what_a_browser_opens_elsewhere_is_not_allowed(text: str) -> None:
    assert why_not_allowed(text, {"status.app"}) is not None


def test_a_word_of_another_script_that_looks_latin_is_a_disguise() -> None:
    assert looks_latin("аррӏе") and not looks_latin("почта") and not looks_latin("apple")
    assert why_not_allowed("https://аррӏе.com", None)
    assert why_not_allowed("https://почта.example", None) is None


def test_of_marks_without_end_a_few_are_normalized() -> None:
    """NFKC is quadratic in them: 156 KiB took 6 s."""
    bomb = "a" + "\u0315\u0301" * 80_000
    assert len(plain(bomb)) <= 5 and appearance(bomb) == "a"
    assert len(plain("a" * 10_000_000)) == len(appearance("a" * 10_000_000)) == MAX_CHARACTERS
