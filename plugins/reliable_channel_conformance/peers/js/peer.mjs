// Stock js-waku as a peer of docs/conformance-kit.md, for the conformance kit:
//
//   reliable-channel conformance --peer "node peer.mjs"
//
// The channel is @waku/sdk's ReliableChannel as published; only the node below it is ours. With
// `--deliveries sds` a message counts as received when SDS delivers it, and not, as the SDK has it,
// when it arrives: then the rows are about @waku/sds alone.
import { createDecoder, createEncoder } from "@waku/core";
import { ReliableChannel } from "@waku/sdk";
import { createRoutingInfo } from "@waku/utils";
import { createInterface } from "node:readline";
import { restNode } from "./rest_node.mjs";

/** `--name value` for all flags, of which a peer obeys those that it has something for. */
const flags = {};
for (let at = 2; at + 1 < process.argv.length; at += 2) flags[process.argv[at].slice(2)] = process.argv[at + 1];
const ms = (name, fallback) => Number(flags[name] ?? fallback);
const say = (event, fields = {}) =>
  process.stdout.write(JSON.stringify({ event, at_ms: Date.now(), ...fields }) + "\n");
process.on("unhandledRejection", (e) => say("unhandled_rejection", { reason: String(e?.message ?? e) }));

const EVENTS = {
  "message-sent": "message_sent",
  "message-acknowledged": "message_acknowledged",
  "message-possibly-acknowledged": "message_possibly_acknowledged",
  "sending-message-irrecoverable-error": "send_failed",
  "irretrievable-message": "message_lost"
};

const contentTopic = flags["content-topic"];
const routingInfo = createRoutingInfo({ clusterId: 1, numShardsInCluster: 8 }, { contentTopic });
const channel = await ReliableChannel.create(
  restNode(flags.node), flags["channel-id"], flags["sender-id"],
  createEncoder({ contentTopic, routingInfo }), createDecoder(contentTopic, routingInfo),
  {
    autoStart: false,
    syncMinIntervalMs: ms("sync-min-interval-ms", 30_000),
    retryIntervalMs: ms("retry-interval-ms", 30_000),
    maxRetryAttempts: 1_000,
    retrieveFrequencyMs: ms("retrieve-frequency-ms", 10_000),
    sweepInBufIntervalMs: ms("sweep-in-buf-interval-ms", 5_000),
    processTaskMinElapseMs: 50,
    timeoutForLostMessagesMs: flags["timeout-for-lost-messages-ms"]
      ? ms("timeout-for-lost-messages-ms")
      : undefined,
    repairConfig: { tMin: ms("repair-t-min-ms", 30_000), tMax: ms("repair-t-max-ms", 120_000) }
  }
);
for (const [theirs, ours] of Object.entries(EVENTS))
  channel.addEventListener(theirs, ({ detail }) =>
    say(ours, typeof detail === "string" ? { message_id: detail } : { message_id: detail.messageId }));

const entries = () =>
  channel.messageChannel.localHistory.slice(0).map((message) => ({
    message_id: message.messageId,
    sender_id: message.senderId,
    lamport_timestamp: Number(message.lamportTimestamp),
    payload: Buffer.from(message.content).toString("base64")
  }));

if (flags.deliveries === "sds")
  channel.messageChannel.addEventListener("sds:in:message-delivered", ({ detail }) => {
    const entry = entries().find(({ message_id }) => message_id === detail);
    say("message_received", entry ?? { message_id: detail, payload: "" });
  });
else
  channel.addEventListener("message-received", ({ detail }) =>
    say("message_received", { payload: Buffer.from(detail.payload).toString("base64") }));
channel.messageChannel.addEventListener("sds:in:message-irretrievably-lost", ({ detail }) => {
  for (const { messageId } of detail) say("message_lost", { message_id: messageId });
});

const COMMANDS = {
  send: ({ payload }) => ["accepted", { message_id: channel.send(Buffer.from(payload, "base64")) }],
  log: () => ["log", { entries: entries() }],
  statistics: () => ["statistics", {}]
};

await channel.start();
say("ready", { sender_id: flags["sender-id"] });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.op === "stop") break;
  try {
    if (!COMMANDS[command.op]) throw new Error(`unknown op ${command.op}`);
    const [event, fields] = COMMANDS[command.op](command);
    say(event, { ref: command.ref, ...fields });
  } catch (error) {
    say("error", { ref: command.ref, reason: String(error?.message ?? error) });
  }
}
say("stopped");
process.exit(0);
