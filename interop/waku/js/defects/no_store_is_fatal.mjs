// Where there is no Store, the first missing message ends the process by an unhandled rejection.
import { MissingMessageRetriever } from "../node_modules/@waku/sdk/dist/reliable_channel/missing_message_retriever.js";
import { tell } from "./told.mjs";

let unhandled = "";
process.on("unhandledRejection", (error) => (unhandled = String(error.message)));
// What Store.queryGenerator does without a peer.
async function* retrieve() {
  throw new Error("No peers available to query");
}
const retriever = new MissingMessageRetriever({}, 10, retrieve, undefined);
retriever.start();
retriever.addMissingMessage("missing", new Uint8Array(32));
await new Promise((resolve) => setTimeout(resolve, 100));
tell("an event, and another try", `unhandled rejection: ${unhandled}`, unhandled !== "");
