// What is known of the channel, and its picture on a canvas. All names are those of other
// participants: they reach the page as text of a canvas or of a text node, and nothing else.

export const STAGES = ["waiting", "sent", "held", "held by all", "failed"];
export const COLOURS = ["#7d8896", "#f3d34a", "#f0a63a", "#46c37b", "#ff5c6c"];
const STEPS = 12; // shades from held by none to held by all
const LEFT = 168, HEARD = 40, TOP = 22, BOTTOM = 46;
const MANY_DOTS = 3_000, MANY_ARROWS = 700, MANY_GAPS = 3_000;

function mix(one, other, share) {
  const part = (text, at) => parseInt(text.slice(at, at + 2), 16);
  const value = (at) => Math.round(part(one, at) + (part(other, at) - part(one, at)) * share);
  return [value(1), value(3), value(5)];
}

// Palette: waiting, sent, shades of held, all, failed.
const SHADES = [];
for (let i = 0; i < 2; i++) SHADES.push(mix(COLOURS[i], COLOURS[i], 0));
for (let i = 0; i < STEPS; i++) SHADES.push(mix("#f0a63a", "#7fbf5a", i / (STEPS - 1)));
SHADES.push(mix(COLOURS[3], COLOURS[3], 0), mix(COLOURS[4], COLOURS[4], 0));
const CSS = SHADES.map(([r, g, b]) => `rgb(${r},${g},${b})`);
const PIXELS = Uint32Array.from(SHADES, ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);

// How long ago a participant was heard last.
const age = (ms) => {
  const [unit, length] = [["d", 86400000], ["h", 3600000], ["min", 60000]].find(([, each]) => ms >= each) ?? ["s", 1000];
  return `${Math.floor(Math.max(0, ms) / length)} ${unit}`;
};

// Messages in columns: a hundred thousand objects would be slow to walk.
export class Table {
  constructor() {
    this.size = 0;
    this.grow(1024);
    this.reached = [];
    this.parents = [];
    this.children = [];
    this.order = [];
    this.isSorted = true;
    this.lanes = [];
    this.joined = [];
    this.heard = [];
    this.gaps = new Map();
    this.lamps = [];
    this.seconds = new Map();
    this.last = 0;
  }

  grow(capacity) {
    const copy = (Kind, old) => { const made = new Kind(capacity); if (old) made.set(old); return made; };
    this.at = copy(Float64Array, this.at);
    this.lane = copy(Int32Array, this.lane);
    this.sent = copy(Float64Array, this.sent);
    this.failed = copy(Float64Array, this.failed);
    this.count = copy(Int32Array, this.count);
    this.known = copy(Uint8Array, this.known);
  }

  take(piece) {
    for (const [name, since] of piece.lanes ?? []) {
      this.lanes.push(name);
      this.joined.push(since);
    }
    if (piece.lanes) this.joined.sort((a, b) => a - b);
    for (const row of piece.messages ?? []) this.takeMessage(row);
    for (const row of piece.gaps ?? []) this.gaps.set(row[0], row);
    for (const [second, total, useful] of piece.seconds ?? []) this.seconds.set(second, [total, useful]);
    if (piece.heard) this.heard = piece.heard;
    if (piece.lamps) this.lamps = piece.lamps;
    this.last = Math.max(this.last, piece.last);
  }

  takeMessage([number, at, lane, sent, failed, count, parents, reached]) {
    while (number >= this.at.length) this.grow(this.at.length * 2);
    if (!this.known[number]) {
      this.known[number] = 1;
      this.size++;
      const newest = this.order.length ? this.at[this.order[this.order.length - 1]] : -Infinity;
      this.order.push(number);
      if (at < newest) this.isSorted = false;
    }
    this.at[number] = at;
    this.lane[number] = lane;
    this.sent[number] = sent ?? Infinity;
    this.failed[number] = failed ?? Infinity;
    this.count[number] = count;
    this.reached[number] = reached;
    if (parents.length && !this.parents[number]?.length) {
      for (const parent of parents) (this.children[parent] ??= []).push(number);
    }
    this.parents[number] = parents;
  }

  // The first place in `order` from a time on.
  from(time) {
    if (!this.isSorted) {
      this.order.sort((a, b) => this.at[a] - this.at[b]);
      this.isSorted = true;
    }
    let low = 0, high = this.order.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at[this.order[middle]] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  others(time) {
    let low = 0, high = this.joined.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.joined[middle] <= time) low = middle + 1; else high = middle;
    }
    return Math.max(0, low - 1);
  }

  held(number, time) {
    const reached = this.reached[number];
    const pairs = reached.length;
    if (!pairs || reached[0] > time) return 0;
    if (reached[pairs - 2] <= time) return this.count[number];
    let low = 0, high = pairs / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (reached[2 * middle] <= time) low = middle + 1; else high = middle;
    }
    return reached[2 * low - 1];
  }

  // A colour of the palette.
  shade(number, time, others) {
    if (this.failed[number] <= time) return SHADES.length - 1;
    const held = this.held(number, time);
    if (held) return held >= others ? SHADES.length - 2 : 2 + Math.floor((held / others) * STEPS);
    return this.sent[number] <= time ? 1 : 0;
  }

  rate(time) {
    let total = 0, useful = 0;
    for (let second = Math.floor(time / 1000) - 9; second <= time / 1000; second++) {
      const here = this.seconds.get(second);
      if (here) { total += here[0]; useful += here[1]; }
    }
    return [total / 10, total ? 1 - useful / total : null];
  }
}

export class Picture {
  constructor(canvas, table) {
    this.canvas = canvas;
    this.table = table;
    this.context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    this.start = 0;      // the window in time
    this.span = 20_000;
    this.top = 0;        // the first lane, and how high one is
    this.height = 0;     // 0: as high as fits
    this.time = 0;       // what is shown is as it was then
    this.selected = -1;
    this.base = 0;
    this.hatch = this.hatching("#ff5c6c");
    this.lostHatch = this.hatching("#a03a46");
  }

  hatching(colour) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const context = tile.getContext("2d");
    context.strokeStyle = colour;
    context.lineWidth = 1.4;
    context.beginPath();
    for (const shift of [-8, 0, 8]) { context.moveTo(shift, 8); context.lineTo(shift + 8, 0); }
    context.stroke();
    return this.context.createPattern(tile, "repeat");
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.canvas;
    this.width = clientWidth;
    this.tall = clientHeight;
    this.ratio = ratio;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
  }

  get laneHeight() {
    return this.height || Math.min(80, Math.max(0.1, (this.tall - TOP - BOTTOM) / Math.max(1, this.table.lanes.length)));
  }

  x(time) { return LEFT + ((time - this.start) / this.span) * (this.width - LEFT); }
  y(lane) { return TOP + (lane - this.top + 0.5) * this.laneHeight; }
  timeAt(x) { return this.start + ((x - LEFT) / (this.width - LEFT)) * this.span; }

  // The message that is nearest to a place, within a few pixels.
  at(x, y) {
    const { table } = this;
    const reach = (12 / (this.width - LEFT)) * this.span;
    let best = -1, least = 14;
    for (let i = table.from(this.timeAt(x) - reach); i < table.order.length; i++) {
      const number = table.order[i];
      if (table.at[number] > this.timeAt(x) + reach) break;
      if (table.at[number] > this.time) break;
      const far = Math.hypot(this.x(table.at[number]) - x, this.y(table.lane[number]) - y);
      if (far < least) { least = far; best = number; }
    }
    return best;
  }

  draw() {
    const { context, table, ratio } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = "#0f1319";
    context.fillRect(0, 0, this.width, this.tall);
    const first = table.from(this.start), last = table.from(Math.min(this.time, this.start + this.span) + 1);
    this.drawLanes();
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, this.width - LEFT, this.tall - TOP - BOTTOM);
    context.clip();
    this.drawGaps();
    if (last - first <= MANY_ARROWS) this.drawArrows(first, last);
    if (last - first > MANY_DOTS) this.drawPixels(first, last); else this.drawDots(first, last);
    if (this.selected >= 0 && table.known[this.selected]) this.drawSelected();
    context.restore();
    this.drawTraffic();
    this.drawTime();
    return last - first;
  }

  drawLanes() {
    const { context, table } = this;
    const height = this.laneHeight;
    const every = Math.max(1, Math.ceil(12 / height));
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "left";
    const begin = Math.max(0, Math.floor(this.top));
    for (let lane = begin; lane < table.lanes.length; lane++) {
      const y = this.y(lane);
      if (y > this.tall - BOTTOM) break;
      if (height > 6 && lane % 2) {
        context.fillStyle = "#131922";
        context.fillRect(0, y - height / 2, this.width, height);
      }
      if (lane % every === 0 && y > TOP) {
        context.fillStyle = "#aab4c2";
        context.fillText(this.fitted(table.lanes[lane]), 10, y, LEFT - HEARD - 16);
        context.fillStyle = "#66707e";
        context.textAlign = "right";
        context.fillText(age(table.last - table.heard[lane]), LEFT - 8, y, HEARD);
        context.textAlign = "left";
      }
    }
  }

  fitted(name) {
    return name.length > 18 ? name.slice(0, 17) + "…" : name;
  }

  drawGaps() {
    const { context, table } = this;
    const height = this.laneHeight, isThin = table.gaps.size > MANY_GAPS || height < 6;
    const rows = new Map(), named = new Set();
    context.font = "10px system-ui, sans-serif";
    for (const [, lane, since, until, isLost, id, sender, hint, asked] of table.gaps.values()) {
      if (since > this.time) continue;
      const isOpen = until === null || until > this.time;
      const from = Math.max(LEFT, this.x(since)), to = Math.min(this.width, this.x(isOpen ? this.time : until));
      const y = this.y(lane);
      if (to < LEFT || from > this.width || y < TOP - height || y > this.tall - BOTTOM + height) continue;
      context.fillStyle = isThin ? (isLost ? "#702a33" : "#8c3a46") : isLost && !isOpen ? this.lostHatch : this.hatch;
      const tall = Math.max(1, Math.min(height * 0.55, 16));
      // Hatching that is hatched again would be a red bar: one pixel is drawn once.
      const done = rows.get(lane) ?? LEFT;
      if (to > done) {
        context.globalAlpha = 0.5;
        context.fillRect(Math.max(from, done), y - tall / 2, Math.max(1, to - Math.max(from, done)), tall);
        context.globalAlpha = 1;
        rows.set(lane, Math.max(done, to));
      }
      if (isOpen && height >= 26 && !named.has(lane)) {
        named.add(lane);
        const who = asked.some((time) => time <= this.time)
          ? `asked: all${sender === null ? "" : `, first ${this.fitted(sender)}`}` : hint ? "asked: Store, by hint" : "asked: Store";
        context.fillStyle = "#ff9aa5";
        context.textAlign = "right";
        context.fillText(`? ${id} ${who}`, to - 4, y + height / 2 - 6);
        context.textAlign = "left";
      }
    }
  }

  arrow(from, to, colour, width) {
    const { context, table } = this;
    const x1 = this.x(table.at[from]), y1 = this.y(table.lane[from]);
    const x2 = this.x(table.at[to]), y2 = this.y(table.lane[to]);
    const bend = Math.max(10, Math.min(60, (x2 - x1) / 2));
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 6, y2);
    context.stroke();
    context.beginPath();
    context.moveTo(x2 - 4, y2);
    context.lineTo(x2 - 9, y2 - 3);
    context.lineTo(x2 - 9, y2 + 3);
    context.fill();
  }

  drawArrows(first, last) {
    const { table } = this;
    for (let i = first; i < last; i++) {
      const number = table.order[i];
      for (const parent of table.parents[number]) {
        if (table.known[parent]) this.arrow(parent, number, "rgba(130,150,175,0.35)", 1);
      }
    }
  }

  drawDots(first, last) {
    const { context, table, time } = this;
    const radius = Math.max(1.5, Math.min(5, this.laneHeight / 3));
    const others = table.others(time);
    const groups = SHADES.map(() => []);
    for (let i = first; i < last; i++) {
      const number = table.order[i];
      groups[table.shade(number, time, others)].push(number);
    }
    groups.forEach((numbers, shade) => {
      context.fillStyle = CSS[shade];
      context.beginPath();
      for (const number of numbers) {
        const x = this.x(table.at[number]), y = this.y(table.lane[number]);
        context.moveTo(x + radius, y);
        context.arc(x, y, radius, 0, 2 * Math.PI);
      }
      context.fill();
    });
  }

  // Thousands of dots: pixels are set one by one, which costs the same for any number of colours.
  drawPixels(first, last) {
    const { context, table, time, ratio } = this;
    const left = Math.round(LEFT * ratio), top = Math.round(TOP * ratio);
    const width = this.canvas.width - left, height = Math.round((this.tall - TOP - BOTTOM) * ratio);
    if (width < 4 || height < 4) return;
    const image = context.getImageData(left, top, width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const side = Math.max(2, Math.min(4, Math.round(this.laneHeight * ratio * 0.7)));
    const others = table.others(time);
    const scale = width / this.span, tall = this.laneHeight * ratio;
    for (let i = first; i < last; i++) {
      const number = table.order[i];
      const x = ((table.at[number] - this.start) * scale) | 0;
      const y = ((table.lane[number] - this.top + 0.5) * tall) | 0;
      if (x < 0 || y < 0 || x + side > width || y + side > height) continue;
      const colour = PIXELS[table.shade(number, time, others)];
      for (let row = y * width + x, end = row + side * width; row < end; row += width) {
        for (let column = 0; column < side; column++) pixels[row + column] = colour;
      }
    }
    context.putImageData(image, left, top);
  }

  drawSelected() {
    const { context, table, selected } = this;
    for (const parent of table.parents[selected]) if (table.known[parent]) this.arrow(parent, selected, "#62d6ff", 1.8);
    for (const child of table.children[selected] ?? []) {
      if (table.at[child] <= this.time) this.arrow(selected, child, "#d58bff", 1.8);
    }
    context.strokeStyle = "#ffffff";
    context.lineWidth = 2;
    context.beginPath();
    context.arc(this.x(table.at[selected]), this.y(table.lane[selected]), 8, 0, 2 * Math.PI);
    context.stroke();
  }

  // Bytes a second; the part that is content, sent for the first time, is green.
  drawTraffic() {
    const { context, table } = this;
    const floor = this.tall - 4, tall = BOTTOM - 12;
    const columns = Math.max(1, Math.floor((this.width - LEFT) / 3));
    const totals = new Float64Array(columns), useful = new Float64Array(columns);
    const first = Math.max(0, Math.floor(this.start / 1000)), last = Math.floor((this.start + this.span) / 1000);
    const perColumn = this.span / columns;
    const add = (second, [total, content]) => {
      // A second may be several columns wide.
      const begin = Math.floor((second * 1000 - this.start) / perColumn);
      const end = Math.max(begin + 1, Math.floor((second * 1000 + 1000 - this.start) / perColumn));
      for (let column = Math.max(0, begin); column < Math.min(columns, end); column++) {
        totals[column] += total / Math.max(1, end - begin);
        useful[column] += content / Math.max(1, end - begin);
      }
    };
    for (let second = first; second <= last; second++) {
      const here = table.seconds.get(second);
      if (here && second * 1000 <= this.time) add(second, here);
    }
    const most = totals.reduce((a, b) => Math.max(a, b), 1);
    for (let column = 0; column < columns; column++) {
      const x = LEFT + column * 3, height = (totals[column] / most) * tall;
      context.fillStyle = "#3f6ea8";
      context.fillRect(x, floor - height, 2, height);
      context.fillStyle = "#46c37b";
      context.fillRect(x, floor - (useful[column] / most) * tall, 2, (useful[column] / most) * tall);
    }
    context.fillStyle = "#8592a3";
    context.font = "11px system-ui, sans-serif";
    context.fillText("bytes a second", 10, this.tall - BOTTOM / 2 + 4, LEFT - 16);
  }

  drawTime() {
    const { context } = this;
    const steps = [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 108e5, 216e5, 864e5];
    const step = steps.find((each) => (each / this.span) * (this.width - LEFT) > 90) ?? 864e5;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    for (let tick = Math.ceil((this.base + this.start) / step) * step; tick <= this.base + this.start + this.span; tick += step) {
      const x = this.x(tick - this.base);
      if (x < LEFT + 30) continue;
      context.fillStyle = "#8592a3";
      context.fillText(new Date(tick).toISOString().slice(11, step < 1000 ? 23 : 19), x, 11);
      context.fillStyle = "rgba(120,140,165,0.12)";
      context.fillRect(x, TOP, 1, this.tall - TOP - BOTTOM);
    }
    context.textAlign = "left";
    const now = this.x(this.time);
    if (now >= LEFT && now <= this.width) {
      context.fillStyle = "#62b6ff";
      context.fillRect(now, TOP, 1, this.tall - TOP);
    }
  }
}
