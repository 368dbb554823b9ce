// A bloom filter of ones, seen twice, acknowledges what nobody has.
import { MessageChannel, SyncMessage } from "@waku/sds";
import { tell } from "./told.mjs";

const FILTER_BYTES = 18_752;
const channel = new MessageChannel("room", "bob");
let acknowledged = 0;
channel.addEventListener("sds:out:message-acknowledged", () => (acknowledged += 1));
await channel.pushOutgoingMessage(Buffer.from("nobody has this"), async () => ({ success: true }));
await channel.processTasks();
for (let round = 0; round < 2; round++) {
  const ones = new Uint8Array(FILTER_BYTES).fill(0xff);
  channel.pushIncomingMessage(new SyncMessage(`s${round}`, "room", "mallory", [], 1n, ones, undefined));
  await channel.processTasks();
}
tell("no acknowledgement", `acknowledged ${acknowledged} message(s)`, acknowledged > 0);
