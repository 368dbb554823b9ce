// The page: what is received, what is shown beside the picture, and what mouse and keys do.
import { COLOURS, Picture, STAGES, Table } from "./picture.js";

const found = (id) => document.getElementById(id);
const canvas = found("picture"), slider = found("time");
const LAMPS = ["send", "receive", "Store"];
let table = new Table();
let picture = new Picture(canvas, table);
let isLive = true, isChosen = false, needsDraw = true, needsText = true, channels = [];

// Elements with text; names of participants are text, and never markup.
function made(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = kind;
  return element;
}

function clock(time) { return new Date(picture.base + time).toISOString().slice(11, 23); }

function size(bytes) {
  for (const unit of ["B", "kB", "MB"]) {
    if (bytes < 1000) return `${bytes.toFixed(unit === "B" ? 0 : 1)} ${unit}`;
    bytes /= 1000;
  }
  return `${bytes.toFixed(1)} GB`;
}

// Receiving

const source = new EventSource("events");
source.onopen = () => { // also after a break: all is sent again
  table = new Table();
  picture.table = table;
};
source.onerror = () => { found("rate").textContent = "the command is gone; waiting for it"; };
source.onmessage = ({ data }) => {
  const piece = JSON.parse(data);
  if (piece.base !== undefined) picture.base = piece.base;
  if (piece.channels) channels = piece.channels;
  table.forgotten = piece.forgotten;
  table.take(piece);
  if (isLive) follow();
  document.body.dataset.loaded = String(!piece.more);
  needsDraw = needsText = true;
};

// Time

function follow() {
  picture.time = table.last;
  if (!isChosen) picture.span = Math.min(120_000, Math.max(5_000, table.last * 1.04));
  picture.start = Math.max(-picture.span * 0.02, table.last - picture.span * 0.96);
}

function go(time, live = false) {
  isLive = live;
  picture.time = Math.min(Math.max(time, 0), table.last);
  if (live) follow();
  const { start, span } = picture;
  if (picture.time < start || picture.time > start + span) picture.start = picture.time - span * 0.75;
  needsDraw = needsText = true;
}

function zoom(factor, x = canvas.clientWidth) {
  const time = picture.timeAt(x);
  const span = Math.min(Math.max(picture.span * factor, 200), Math.max(table.last * 1.1, 5_000));
  picture.start = time - ((time - picture.start) / picture.span) * span;
  picture.span = span;
  isChosen = true;
  needsDraw = true;
}

function showAll() {
  picture.span = Math.max(1_000, table.last * 1.04);
  picture.start = -picture.span * 0.02;
  picture.top = picture.height = 0;
  isChosen = true;
  needsDraw = true;
}

// What stands beside the picture

function showText() {
  const time = picture.time;
  found("channel").textContent = channels.join(", ") || "no channel yet";
  const forgotten = table.forgotten ? `, ${table.forgotten.toLocaleString("en")} forgotten` : "";
  found("counts").textContent =
    `${table.lanes.length.toLocaleString("en")} participants, ${table.size.toLocaleString("en")} messages${forgotten}`;
  const [bytes, overhead] = table.rate(time);
  const share = Math.floor(overhead * 10_000) / 100;  // 100 only where it is all
  found("rate").textContent =
    `${size(bytes)}/s${overhead === null ? "" : `, ${share.toFixed(2)} % of it overhead`}`;
  found("clock").textContent = clock(time);
  found("live").className = isLive ? "on" : "";
  if (document.activeElement !== slider || isLive) slider.value = String(table.last ? (time / table.last) * 10_000 : 10_000);
  showLamps(time);
  showMissing(time);
}

function stateAt(changes, time) {
  let state = null;
  for (const change of changes) if (change[0] <= time) state = change;
  return state;
}

function showLamps(time) {
  const rows = table.lamps.map(([lane, node, services]) => {
    const states = services.map((changes) => stateAt(changes, time));
    return { lane, node, states, bad: states.filter((state) => state && !state[1]).length };
  });
  rows.sort((a, b) => b.bad - a.bad || a.lane - b.lane);
  const shown = rows.slice(0, 24).map(({ lane, node, states }) => {
    const row = made("div", "", "lamp");
    const whose = lane < 0 ? "this view" : table.lanes[lane];
    const name = made("b", node ? `${whose} at ${node}` : whose);
    name.title = name.textContent;
    row.append(name);
    states.forEach((state, i) => {
      const lamp = made("span");
      lamp.append(made("i", "", state === null ? "" : state[1] ? "on" : "off"), LAMPS[i]);
      row.append(lamp);
    });
    const why = states.filter((state) => state && !state[1]).map((state) => state[2]).join("; ");
    return why ? [row, made("div", why, "why")] : [row];
  });
  if (rows.length > 24) shown.push([made("div", `and ${rows.length - 24} more`, "dim")]);
  found("lamps").replaceChildren(...shown.flat());
}

function showMissing(time) {
  const lanes = new Map();
  for (const gap of table.gaps.values()) {
    if (gap[2] > time || (gap[3] !== null && gap[3] <= time)) continue;
    const known = lanes.get(gap[1]);
    lanes.set(gap[1], known ? [known[0], known[1] + 1] : [gap, 1]);
  }
  const shown = [...lanes.values()].slice(0, 12).map(([gap, count]) => {
    const [, lane, since, , , id, sender, hint, asked] = gap;
    const times = asked.filter((each) => each <= time).length;
    const store = hint ? "Store, by its hint" : "Store, by time";
    const others = times
      ? `all others, ${times === 1 ? "once" : `${times} times`}${sender === null ? "" : `; ${sender} answers first`}`
      : "the others are not asked yet";
    const row = made("div", "", "gap");
    row.append(made("b", `${table.lanes[lane]} misses ${count}`),
      made("div", `since ${clock(since)} ${id}; asked are: ${store}; ${others}`, "dim"));
    return row;
  });
  if (lanes.size > 12) shown.push(made("div", `and ${lanes.size - 12} more participants`, "dim"));
  found("missing").replaceChildren(...(shown.length ? shown : [made("div", "nothing", "dim")]));
}

async function select(number) {
  picture.selected = number;
  needsDraw = true;
  found("detail").hidden = number < 0;
  if (number < 0) return;
  const answer = await fetch(`message?number=${number}`);
  if (picture.selected !== number) return;
  if (answer.ok) showMessage(await answer.json());
  else found("detail").replaceChildren(made("div", "this message was forgotten", "dim"));
}

function named(list) {
  return list.length ? list.slice(0, 40).join(", ") + (list.length > 40 ? ` and ${list.length - 40} more` : "") : "none";
}

function links(messages) {
  if (!messages.length) return [made("span", "nothing that was seen")];
  return messages.flatMap(([number, id, sender], i) => {
    const link = made("a", `${id.slice(0, 8)} of ${sender}`);
    link.addEventListener("click", () => show(number));
    return i ? [", ", link] : [link];
  });
}

function showMessage(message) {
  const list = made("dl");
  const row = (name, ...values) => {
    const value = made("dd");
    value.append(...values);
    list.append(made("dt", name), value);
  };
  row("sender", message.sender);
  row("time", new Date(message.at_ms).toISOString());
  row("Lamport", String(message.lamport_timestamp));
  row("size", size(message.size_bytes));
  row("hint", message.hint ?? "not known");
  row("follows", ...links(message.after), ` (${message.references} references)`);
  row("followed by", ...links(message.before));
  row("has it", `${message.has.length} of ${message.others}: ${named(message.has)}`);
  if (message.has_not.length) row("not known", named(message.has_not));
  const late = message.delays.filter((delay) => delay.why).map((delay) =>
    made("div", `${delay.participant}${delay.delay_ms === null ? "" : ` ${(delay.delay_ms / 1000).toFixed(1)} s late`}: ${delay.why}`, "late"));
  const steps = made("ol");
  for (const [at, what] of message.history) {
    const step = made("li");
    step.append(made("time", new Date(at).toISOString().slice(11, 23)), what);
    steps.append(step);
  }
  const close = made("a", "close");
  close.addEventListener("click", () => select(-1));
  found("detail").replaceChildren(made("h2", "Message"), made("div", message.message_id, "id"), list, ...late, steps, close);
}

function show(number) {
  if (!table.known[number]) return;
  const at = table.at[number];
  if (at < picture.start || at > picture.start + picture.span) picture.start = at - picture.span / 2;
  select(number);
}

// Mouse and keys

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  drag = { x: event.offsetX, y: event.offsetY, start: picture.start, top: picture.top, far: 0 };
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) return;
  drag.far = Math.max(drag.far, Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y));
  if (drag.far < 5) return;
  const width = canvas.clientWidth;
  picture.start = drag.start - (picture.timeAt(event.offsetX) - picture.timeAt(drag.x));
  if (picture.height) picture.top = Math.max(0, drag.top - (event.offsetY - drag.y) / picture.laneHeight);
  if (width) { isLive = false; isChosen = true; }
  needsDraw = needsText = true;
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && drag.far < 5) select(picture.at(event.offsetX, event.offsetY));
  drag = null;
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const factor = event.deltaY > 0 ? 1.2 : 1 / 1.2;
  if (event.shiftKey || event.ctrlKey) {
    const lane = (event.offsetY - 22) / picture.laneHeight + picture.top;
    picture.height = Math.min(60, Math.max(0.5, picture.laneHeight / factor));
    picture.top = Math.max(0, lane - (event.offsetY - 22) / picture.laneHeight);
    needsDraw = true;
  } else zoom(factor, event.offsetX);
}, { passive: false });
slider.addEventListener("input", () => go((Number(slider.value) / 10_000) * table.last, Number(slider.value) === 10_000));
found("live").addEventListener("click", () => go(table.last, true));
found("in").addEventListener("click", () => zoom(1 / 1.5));
found("out").addEventListener("click", () => zoom(1.5));
found("all").addEventListener("click", showAll);
document.addEventListener("keydown", (event) => {
  if (event.target === slider) return;
  const { selected } = picture;
  const place = selected < 0 ? table.from(picture.time + 1) : table.order.indexOf(selected);
  const step = (by) => { const number = table.order[place + by]; if (number !== undefined) show(number); };
  const keys = {
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), End: () => go(table.last, true),
    "+": () => zoom(1 / 1.5), "-": () => zoom(1.5), Escape: () => select(-1),
    ",": () => go(picture.time - picture.span / 8), ".": () => go(picture.time + picture.span / 8),
  };
  keys[event.key]?.();
});
new ResizeObserver(() => { picture.resize(); needsDraw = true; }).observe(canvas);

for (const [i, stage] of STAGES.entries()) {
  const entry = made("span");
  const dot = made("i");
  dot.style.background = COLOURS[i];
  entry.append(dot, stage);
  found("legend").append(entry);
}

// Frames: drawn when something changed; the text beside, which is slower, four times a second.
let lastText = 0;
function frame(now) {
  if (needsDraw && picture.width) {
    needsDraw = false;
    picture.draw();
  }
  if (needsText && now - lastText > 250) {
    lastText = now;
    needsText = false;
    showText();
  }
  requestAnimationFrame(frame);
}
picture.resize();
requestAnimationFrame(frame);
