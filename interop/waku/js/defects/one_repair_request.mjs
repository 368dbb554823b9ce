// A missing message is asked for once, though the sync message with the request never went out.
import { ContentMessage, MessageChannel } from "@waku/sds";
import { tell } from "./told.mjs";

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const channel = new MessageChannel("room", "bob", { repairConfig: { tMin: 10, tMax: 20 } });
const dependency = { messageId: "missing", senderId: "alice" };
channel.pushIncomingMessage(
  new ContentMessage("id-2", "room", "alice", [dependency], 2n, undefined, Buffer.from("later"))
);
await channel.processTasks();
let requests = 0;
for (let round = 0; round < 5; round++) {
  await wait(50);
  await channel.pushOutgoingSyncMessage(async (sync) => {
    requests += sync.repairRequest?.length ?? 0;
    return false; // the network is away
  });
}
tell("asks until somebody answers", `asked ${requests} time(s) in 5 rounds`, requests === 1);
