"""TLV, names, vectors and packets: round trips, and everything that is not allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel_svs import InvalidName, Name, Naming, StateVector, TlvError
from reliable_channel_svs.name import text_component
from reliable_channel_svs.packet import Interest, decode_data, decode_interest, make_data
from reliable_channel_svs.signing import DigestSigner
from reliable_channel_svs.tlv import elements, encode, encode_integer, encode_number, integer_bytes

components = st.builds(
    encode, st.integers(3, 0xFFFF), st.binary(max_size=300) | st.binary(min_size=250, max_size=260)
)
names = st.builds(Name, st.lists(components, max_size=3).map(tuple))
numbers = st.integers(0, 2**64 - 1)
vectors = st.builds(
    StateVector, st.dictionaries(names, st.dictionaries(numbers, numbers, max_size=3), max_size=4)
)


@given(vectors)
def test_a_vector_survives_and_is_canonical(vector: StateVector) -> None:
    wire = vector.encode()
    assert StateVector.decode(wire) == vector
    assert StateVector.decode(wire).encode() == wire


@given(vectors, vectors, vectors)
def test_merging_is_a_least_upper_bound(a: StateVector, b: StateVector, c: StateVector) -> None:
    def merged(*parts: StateVector) -> StateVector:
        whole = StateVector()
        for part in parts:
            whole.merge(part)
        return whole

    assert merged(a, b) == merged(b, a)
    assert merged(merged(a, b), c) == merged(a, merged(b, c))
    assert merged(a, a) == a
    assert not merged(a, b).is_outdated_to(a)
    assert a.is_outdated_to(b) is (merged(a, b) != a)


@given(names)
def test_a_name_survives_as_bytes_and_as_text(name: Name) -> None:
    assert Name.decode(name.encode()) == name
    assert Name.parse(str(name)) == name


@pytest.mark.parametrize("size", [252, 253, 254, 300, 65_535, 65_536])
def test_names_around_the_length_that_ndnd_gets_wrong(size: int) -> None:
    name = Name((text_component("x" * size), text_component("y")))
    vector = StateVector({name: {1: 2**64 - 1}})
    assert StateVector.decode(vector.encode()) == vector
    assert Name.decode(name.encode()) == name


@pytest.mark.parametrize(
    ("wire", "says"),
    [
        ("", "ends|missing"),
        ("c9", "ends"),
        ("c901", "announces 1 bytes, but 0 follow"),
        ("c9fd0000", "shortest"),
        ("c9fe00000001ff", "shortest"),
        ("c900c900", "missing|not allowed"),
        ("c90000", "ends|type 0"),
        ("c9020000", "type 0"),
        ("c90dca0bd209d404677d52e9d60101", "element 7 is missing"),
        ("c90cca0a0703080161d203d60101", "element 212 is missing"),
        ("c90fca0d0703080161d206d404677d52e9", "element 214 is missing"),
        ("c911ca0f0703080161d208d403010203d60101", "3 bytes"),
        ("c90eca0c0703080161d205d400d60101", "0 bytes"),
        ("c907ca050703010161", "digest in a name has 1 bytes"),
        ("c909ca0707051f61616161", "announces|type"),
    ],
)
def test_a_malformed_vector_says_what_is_wrong(wire: str, says: str) -> None:
    with pytest.raises(TlvError, match=says):
        StateVector.decode(bytes.fromhex(wire))


@given(st.integers(0, 2**64 - 1))
def test_numbers_take_the_fewest_bytes(number: int) -> None:
    assert len(integer_bytes(number)) == min(s for s in (1, 2, 4, 8) if number < 1 << 8 * s)
    [(type_, value)] = elements(encode_integer(200, number))
    assert type_ == 200 and int.from_bytes(value, "big") == number
    if number:
        [(type_, _)] = elements(encode_number(number) + b"\x00")
        assert type_ == number


@pytest.mark.parametrize("number", [-1, 2**64])
def test_numbers_that_do_not_fit_are_refused(number: int) -> None:
    with pytest.raises(TlvError, match="not between"):
        StateVector({Name.parse("/a"): {1: number}}).encode()


@pytest.mark.parametrize(
    "text",
    ["", "a", "/a//b", "/.", "/..", "/seq=x", "/seq=-1", "/v=18446744073709551616", "/70000=a",
     "/sha256digest=00", "/params-sha256=zz", "/0=a"],
)  # fmt: skip
def test_a_text_that_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        Name.parse(text)


def test_texts_of_names() -> None:
    for text in ("/", "/a/b", "/room%20one/32=svs/v=3", "/...", "/....", "/t=5/seq=6/seg=0/off=7"):
        assert str(Name.parse(text)) == text
    assert Name.parse("/...").components == (b"\x08\x00",)
    assert repr(Name.parse("/a")) == "Name.parse('/a')"
    assert Name.parse("/a/b").starts_with(Name.parse("/a"))
    assert not Name.parse("/a").starts_with(Name.parse("/a/b"))


def test_publications_of_other_groups_are_not_ours() -> None:
    naming = Naming(Name.parse("/g"))
    for text in ("/", "/a/g", "/a/x/t=1/seq=1", "/a/g/seq=1/t=1", "/a/g/t=1/seq=1/v=0"):
        assert naming.parse_publication(Name.parse(text)) is None
    alo = Naming(Name.parse("/g"), "svs-alo")
    for text in ("/", "/g/a/t=1/seq=1", "/x/a/t=1/seq=1/v=0", "/g/a/t=1/seq=1/v=1"):
        assert alo.parse_publication(Name.parse(text)) is None


def test_interest_flags_survive() -> None:
    interest = Interest(
        Name.parse("/a"), b"1234", 500, can_be_prefix=True, must_be_fresh=True, parameters=b""
    )
    assert decode_interest(interest.encode()) == interest
    plain = Interest(Name.parse("/a"), b"1234")
    assert decode_interest(plain.encode()) == plain


def test_an_interest_whose_digest_does_not_fit_is_refused() -> None:
    wire = bytearray(Interest(Name.parse("/a"), b"1234", parameters=b"five").encode())
    wire[-1] ^= 1
    with pytest.raises(TlvError, match="digest"):
        decode_interest(bytes(wire))


def test_data_survives_whole_and_no_part_of_it_does() -> None:
    wire = make_data(Name.parse("/a"), b"x" * 300, DigestSigner(), freshness_ms=4_000)
    assert decode_data(wire).content == b"x" * 300
    for end in range(len(wire)):
        with pytest.raises(TlvError):
            decode_data(wire[:end])
