// With the default options a message waits for what it depends on without end, though that is lost.
import { ContentMessage, MessageChannel } from "@waku/sds";
import { tell } from "./told.mjs";

const channel = new MessageChannel("room", "bob");
let ended = 0;
for (const event of ["sds:in:message-delivered", "sds:in:message-irretrievably-lost"])
  channel.addEventListener(event, () => (ended += 1));
const lost = { messageId: "lost", senderId: "alice" };
channel.pushIncomingMessage(
  new ContentMessage("id-2", "room", "alice", [lost], 2n, undefined, Buffer.from("later"))
);
await channel.processTasks();
const later = Date.now() + 365 * 24 * 3_600_000;
Date.now = () => later;
channel.sweepIncomingBuffer();
tell("given up within a year", ended ? "given up" : "still waiting", ended === 0);
