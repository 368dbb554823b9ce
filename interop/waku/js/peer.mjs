// A js-waku ReliableChannel driven by JSON lines, as `reliable-channel peer` is (docs/conformance-kit.md).
//
//   node peer.mjs --node MULTIADDR --channel-id ID --sender-id ID --content-topic TOPIC
//                 [--options JSON] [--stock | --unchanged] [--cluster-id N]
//                 [--drop-incoming SHARE --seed N]
//
// js-waku is used as its documentation has it: node, peers, channel. What it would not survive or
// say otherwise is told as events: `unhandled_rejection` is what would have ended the process.
import { ReliableChannel } from "@waku/sdk";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { lightNode } from "./light_node.mjs";
import { watchNode, watchRepair } from "./watch.mjs";

const { values: flags } = parseArgs({
  options: {
    node: { type: "string" },
    "channel-id": { type: "string" },
    "sender-id": { type: "string" },
    "content-topic": { type: "string" },
    options: { type: "string", default: "{}" },
    stock: { type: "boolean", default: false },
    unchanged: { type: "boolean", default: false },
    "cluster-id": { type: "string", default: "1" },
    "drop-incoming": { type: "string", default: "0" },
    seed: { type: "string", default: "1" }
  }
});

const say = (event, fields = {}) =>
  process.stdout.write(JSON.stringify({ event, at_ms: Date.now(), ...fields }) + "\n");
process.on("unhandledRejection", (e) => say("unhandled_rejection", { reason: String(e?.message ?? e) }));

// What js-waku calls its events, and what docs/conformance-kit.md calls them.
const EVENTS = {
  "sending-message": "sending_message",
  "message-sent": "message_sent",
  "message-acknowledged": "message_acknowledged",
  "message-possibly-acknowledged": "message_possibly_acknowledged",
  "sending-message-irrecoverable-error": "send_failed",
  "irretrievable-message": "message_lost"
};

/** mulberry32: which messages are dropped is the same for the same seed. */
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Throw away `share` of what Filter brings, as --drop-incoming of `reliable-channel peer` does. */
function dropIncoming(node, seed) {
  const draw = random(seed);
  const subscribe = node.filter.subscribe.bind(node.filter);
  node.filter.subscribe = (decoders, callback) =>
    subscribe(decoders, (message) => {
      if (draw() < share) dropped += 1;
      else callback(message);
    });
}

let dropped = 0;
let share = Number(flags["drop-incoming"]);
const node = await lightNode(flags.node, {
  stock: flags.stock, unchanged: flags.unchanged, clusterId: Number(flags["cluster-id"])
});
dropIncoming(node, Number(flags.seed));
watchNode(node, say);

const topic = { contentTopic: flags["content-topic"] };
const channel = await ReliableChannel.create(
  node, flags["channel-id"], flags["sender-id"],
  node.createEncoder(topic), node.createDecoder(topic), JSON.parse(flags.options)
);
watchRepair(channel, say);
for (const [theirs, ours] of Object.entries(EVENTS))
  channel.addEventListener(theirs, ({ detail }) =>
    say(ours, typeof detail === "string"
      ? { message_id: detail }
      : { message_id: detail.messageId, reason: String(detail.error ?? "") }));
channel.addEventListener("message-received", ({ detail }) =>
  say("message_received", { payload: Buffer.from(detail.payload).toString("base64") }));
channel.messageChannel.addEventListener("sds:in:message-delivered", ({ detail }) =>
  say("sds_delivered", { message_id: detail }));

const log = () =>
  channel.messageChannel.localHistory.slice(0).map((message) => ({
    message_id: message.messageId,
    sender_id: message.senderId,
    lamport_timestamp: Number(message.lamportTimestamp),
    payload: Buffer.from(message.content).toString("base64")
  }));

const COMMANDS = {
  send: ({ payload }) => ["accepted", { message_id: channel.send(Buffer.from(payload, "base64")) }],
  stop_dropping: () => ["accepted", { dropped: dropped + (share = 0) }],
  log: () => ["log", { entries: log() }],
  statistics: () => ["statistics", {
    dropped_incoming: dropped,
    waiting: channel.messageChannel.incomingBuffer.map(({ messageId }) => messageId),
    to_request: channel.messageChannel.repairManager.outgoingBuffer.getItems()
      .filter(({ requested }) => !requested).map(({ entry }) => entry.messageId),
    sought: [...channel.missingMessageRetriever.missingMessages.keys()],
    cpu_s: (({ user, system }) => (user + system) / 1e6)(process.cpuUsage())
  }]
};

say("ready", { sender_id: flags["sender-id"] });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.op === "stop") break;
  try {
    const [event, fields] = COMMANDS[command.op](command);
    say(event, { ref: command.ref, ...fields });
  } catch (error) {
    say("error", { ref: command.ref, reason: String(error?.message ?? error) });
  }
}
channel.stop();
await node.stop();
say("stopped");
process.exit(0);
