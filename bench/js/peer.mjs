// The js-waku side of the benchmark: one long-lived process that answers one JSON line with one JSON line.
//
// Every answer carries CPU time (process.cpuUsage: all threads, so with garbage collection) of the
// work alone; reading files, building histories and talking to the parent are outside of it. What is
// measured is what an application calls: Message.decode + pushIncomingMessage + processTasks, and
// pushOutgoingMessage + processTasks + Message.encode. Three classes are taken from the package's
// files as its index does not export them.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { ContentMessage, Message, MessageChannel, MessageChannelEvent } from "@waku/sds";
import { DefaultBloomFilter } from "./node_modules/@waku/sds/dist/bloom_filter/bloom.js";
import { MemLocalHistory } from "./node_modules/@waku/sds/dist/message_channel/mem_local_history.js";
import { DEFAULT_BLOOM_FILTER_OPTIONS } from "./node_modules/@waku/sds/dist/message_channel/message_channel.js";

const BULK_CHUNK = 20_000; // messages in one MemLocalHistory.push: they are arguments of a call
const WARM_UP_MESSAGES = 300;

let session;

const sha = (text) => createHash("sha256").update(text).digest();

/** A workload file: by turns a wire message and its retrieval hint, each after a big-endian uint32 length. */
function* records(path) {
  const file = readFileSync(path);
  for (let at = 0; at < file.length; ) {
    const fields = [];
    for (let i = 0; i < 2; i++) {
      const length = file.readUInt32BE(at);
      // A copy of its own, as a message that came from the network: decoded messages are views of it.
      fields.push(new Uint8Array(file.subarray(at + 4, at + 4 + length)));
      at += 4 + length;
    }
    yield { wire: fields[0], hint: fields[1] };
  }
}

function loadHistory(history, path) {
  let chunk = [];
  for (const { wire, hint } of records(path)) {
    const message = Message.decode(wire);
    message.retrievalHint = hint;
    chunk.push(message);
    if (chunk.length === BULK_CHUNK) {
      history.push(...chunk);
      chunk = [];
    }
  }
  if (chunk.length > 0) history.push(...chunk);
}

// Without a forced collection before: one makes V8 forget what it compiled, and what follows
// costs up to twice as much as in a process that is left alone.
async function cpuMicroseconds(count, work) {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

async function receiveAll(channel, messages) {
  for (const { wire, hint } of messages) {
    channel.pushIncomingMessage(Message.decode(wire), hint);
    await channel.processTasks();
  }
}

async function sendAll(channel, payloads, sent) {
  for (const payload of payloads) {
    channel.pushOutgoingMessage(payload, async (message) => {
      message.encode();
      sent.push(message);
      return { success: true, retrievalHint: sha(message.messageId) };
    });
    await channel.processTasks();
  }
}

const commands = {
  hello() {
    return { node: process.version, v8: process.versions.v8 };
  },

  /** Begin with a channel whose log holds one file; `traffic` holds what will be received. */
  setup({ channelId, history, traffic, causalHistory }) {
    const log = new MemLocalHistory();
    loadHistory(log, history);
    const channel = new MessageChannel(channelId, "js-waku", { causalHistorySize: causalHistory }, log);
    session = { channel, log, traffic: [...records(traffic)], delivered: 0 };
    channel.addEventListener(MessageChannelEvent.InMessageDelivered, () => session.delivered++);
    return { history: log.length };
  },

  /** Own messages that nobody acknowledges; without a callback they stay in the outgoing buffer alone. */
  async leaveUnacknowledged({ payloads }) {
    for (const payload of payloads) session.channel.pushOutgoingMessage(Buffer.from(payload, "base64"));
    await session.channel.processTasks();
    return { unacknowledged: session.channel.outgoingBuffer.length };
  },

  /** Receive `count` messages from `start`, after one that is not timed. */
  async receive({ start, count }) {
    session.delivered = 0;
    const [first, ...timed] = session.traffic.slice(start, start + 1 + count);
    await receiveAll(session.channel, [first]);
    const us = await cpuMicroseconds(count, () => receiveAll(session.channel, timed));
    return { us, delivered: session.delivered };
  },

  /** Send the payloads, the first not timed; then let a peer acknowledge them, as if none was sent. */
  async send({ payloads }) {
    const [first, ...timed] = payloads.map((payload) => new Uint8Array(Buffer.from(payload, "base64")));
    const sent = [];
    await sendAll(session.channel, [first], sent);
    const us = await cpuMicroseconds(timed.length, () => sendAll(session.channel, timed, sent));
    await acknowledge(session.channel, sent);
    return { us, unacknowledged: session.channel.outgoingBuffer.length };
  },

  /** Begin counting memory: an empty history, and the heap as it is. */
  async memoryBegin() {
    session = undefined; // else what it holds would be freed while counting
    session = { before: await heapBytes(), log: new MemLocalHistory() };
    return {};
  },

  memoryAdd({ messages }) {
    loadHistory(session.log, messages);
    return { history: session.log.length };
  },

  async memoryEnd() {
    return { bytes: (await heapBytes()) - session.before };
  },

  /** CPU time of encode, decode and the bloom filter, a call. */
  async primitives({ traffic, ids, rounds }) {
    session = undefined; // else collecting its history would count
    const wires = [...records(traffic)].map(({ wire }) => wire);
    const messages = wires.map((wire) => Message.decode(wire));
    const filter = new DefaultBloomFilter(DEFAULT_BLOOM_FILTER_OPTIONS);
    const each = async (items, work) => {
      const passes = [];
      for (let i = 0; i < rounds; i++) {
        passes.push(await cpuMicroseconds(items.length, () => items.forEach(work)));
      }
      return passes.sort((a, b) => a - b)[rounds >> 1]; // the first ones are still being compiled
    };
    return {
      decode: await each(wires, (wire) => Message.decode(wire)),
      encode: await each(messages, (message) => message.encode()),
      bloom_insert: await each(ids, (id) => filter.insert(id)),
      bloom_lookup: await each(ids, (id) => filter.lookup(id)),
      bloom_to_bytes: await each(wires, () => filter.toBytes()),
    };
  },
};

/** Once nothing more is freed: buffers go after a collection, and not in its turn. */
async function heapBytes() {
  for (let least = Infinity; ; ) {
    globalThis.gc();
    await new Promise(setImmediate);
    const { heapUsed, external } = process.memoryUsage();
    if (heapUsed + external >= least) return least;
    least = heapUsed + external;
  }
}

/** Receive a peer's message whose causal history lists the messages: proof that it has them. */
async function acknowledge(channel, messages) {
  const last = messages[messages.length - 1];
  const evidence = new ContentMessage(
    `ack of ${last.messageId}`, channel.channelId, "acknowledger",
    messages.map(({ messageId, senderId }) => ({ messageId, senderId })),
    last.lamportTimestamp + 1n, undefined, last.content,
  );
  await receiveAll(channel, [{ wire: evidence.encode(), hint: sha(evidence.messageId) }]);
}

/** Let the compiler see each path before anything is timed. */
async function warmUp() {
  const channel = new MessageChannel("warm-up", "js-waku");
  const sender = new MessageChannel("warm-up", "somebody");
  for (let i = 0; i < WARM_UP_MESSAGES; i++) {
    let wire;
    sender.pushOutgoingMessage(sha(`payload ${i}`), async (message) => {
      wire = message.encode();
      return { success: true, retrievalHint: sha(`hint ${i}`) };
    });
    await sender.processTasks();
    await receiveAll(channel, [{ wire, hint: sha(`hint ${i}`) }]);
  }
}

await warmUp();
for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...parameters } = JSON.parse(line);
  let answer;
  try {
    answer = await commands[command](parameters);
  } catch (error) {
    answer = { error: `${command}: ${error.stack}` };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
