// Of two hints for one missing message the first is kept: where that is wrong, as js-waku's own always
// are (wrong_hints.mjs), Store is asked for a hash that it has not, though the right one came too.
import { MissingMessageRetriever } from "../node_modules/@waku/sdk/dist/reliable_channel/missing_message_retriever.js";
import { tell } from "./told.mjs";

const WRONG = Uint8Array.of(1), RIGHT = Uint8Array.of(2);
const asked = [];
async function* retrieve(_decoders, { messageHashes }) {
  asked.push(...messageHashes.map(([first]) => first));
}
const retriever = new MissingMessageRetriever({}, 10, retrieve, undefined);
for (const hint of [WRONG, RIGHT, RIGHT]) retriever.addMissingMessage("missing", hint);
retriever.start();
await new Promise((resolve) => setTimeout(resolve, 200));
tell("Store is asked for hash 2", `asked for ${new Set(asked).size ? [...new Set(asked)] : "nothing"}`,
  asked.length > 0 && !asked.includes(RIGHT[0]));
