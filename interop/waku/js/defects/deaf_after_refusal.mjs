// A filter request that the node refuses, and whose stream it leaves open, is waited for for ever:
// js-waku takes itself for subscribed. go-waku does so beyond one request a second.
import { FilterCore } from "@waku/core";
import { tell } from "./told.mjs";

const REFUSED = Uint8Array.of(8, 0x0a, 3, ...Buffer.from("N/A"), 0x50, 0xad, 3); // status code 429
const WAIT_MS = 3_000;
const stream = {
  metadata: {},
  sink: async (requests) => { for await (const _ of requests); },
  source: (async function* () {
    yield REFUSED;
    await new Promise(() => {});
  })()
};
const connection = { status: "open", streams: [], newStream: async () => stream };
const components = { events: new EventTarget(), connectionManager: { getConnections: () => [connection] } };
const filter = new FilterCore(() => {}, { components });
const answer = await Promise.race([
  filter.subscribe("/waku/2/rs/1/0", "peer", ["/a/1/b/proto"]).then(({ failure }) => failure?.error),
  new Promise((resolve) => setTimeout(resolve, WAIT_MS, "nothing"))
]);
tell("the refusal", `${answer} within ${WAIT_MS / 1000} s`, answer === "nothing");
