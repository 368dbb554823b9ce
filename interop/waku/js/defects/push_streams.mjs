// After 100 filter pushes of a node that opens a stream for each, nothing arrives any more.
//   node push_streams.mjs MULTIADDR CONTENT_TOPIC     (stock go-waku; somebody sends 150 messages)
import { tell } from "./told.mjs";
import { lightNode } from "../light_node.mjs";

const EXPECTED = 150, QUIET_MS = 30_000;
const node = await lightNode(process.argv[2], { stock: true, closeStreams: false });
let received = 0, cameAt = Infinity;
await node.filter.subscribe(node.createDecoder({ contentTopic: process.argv[3] }), () => {
  received += 1;
  cameAt = Date.now();
});
console.log(JSON.stringify({ event: "ready" }));
const isQuiet = () => Date.now() - cameAt > QUIET_MS;
while (received < EXPECTED && !isQuiet()) await new Promise((resolve) => setTimeout(resolve, 200));
tell(`${EXPECTED} messages`, `${received} messages`, received === 100);
