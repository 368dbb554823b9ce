// A participant that begins again takes its own old messages for echoes: what refers to them waits
// for ever.
import { ContentMessage, MessageChannel } from "@waku/sds";
import { tell } from "./told.mjs";

const old = new ContentMessage("mine", "room", "bob", [], 1n, undefined, Buffer.from("old"));
const reply = new ContentMessage(
  "reply", "room", "alice", [{ messageId: "mine", senderId: "bob" }], 2n, undefined, Buffer.from("reply")
);
const channel = new MessageChannel("room", "bob"); // a new process: it remembers nothing
let delivered = 0;
channel.addEventListener("sds:in:message-delivered", () => (delivered += 1));
for (const message of [reply, old, reply]) channel.pushIncomingMessage(message);
await channel.processTasks();
channel.sweepIncomingBuffer();
tell("both are delivered", `${delivered} delivered`, delivered === 0);
