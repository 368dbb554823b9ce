// A message that the node refuses counts as sent, and is in log and bloom filter.
import { createDecoder, createEncoder } from "@waku/core";
import { LightPushError } from "@waku/interfaces";
import { ReliableChannel } from "@waku/sdk";
import { tell } from "./told.mjs";

const routing = { pubsubTopic: "/waku/2/rs/1/0", clusterId: 1, shardId: 0 };
const topic = "/a/1/b/proto";
const node = {
  lightPush: { send: async () => ({ successes: [], failures: [{ error: LightPushError.REMOTE_PEER_REJECTED }] }) },
  filter: { subscribe: async () => true, unsubscribe: async () => true }
};
const channel = await ReliableChannel.create(
  node, "room", "bob", createEncoder({ contentTopic: topic, routingInfo: routing }), createDecoder(topic, routing)
);
let sent = 0;
channel.addEventListener("message-sent", () => (sent += 1));
channel.send(Buffer.from("refused"));
await new Promise((resolve) => setTimeout(resolve, 500));
const inLog = channel.messageChannel.localHistory.length;
tell("not sent", `${sent} message-sent, ${inLog} in the log`, sent > 0 && inLog > 0);
