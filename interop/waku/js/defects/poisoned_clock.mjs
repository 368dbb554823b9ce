// Any Lamport timestamp is taken over: one message moves a participant's clock for good.
import { ContentMessage, MessageChannel } from "@waku/sds";
import { tell } from "./told.mjs";

const POISON = 2n ** 62n;
const channel = new MessageChannel("room", "bob");
channel.pushIncomingMessage(
  new ContentMessage("evil", "room", "mallory", [], POISON, undefined, Buffer.from("evil"))
);
await channel.processTasks();
let own;
await channel.pushOutgoingMessage(Buffer.from("hello"), async (message) => {
  own = message.lamportTimestamp;
  return { success: true };
});
await channel.processTasks();
tell("a clock near the present", `own message at ${own}`, own > POISON);
