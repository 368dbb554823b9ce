// js-waku looks at what a peer serves once, on identify, and does not speak identify push: where a node
// listens before it serves filter, js-waku does not subscribe, and hears nothing on this connection.
import { FilterCodecs } from "@waku/core";
import { createLightNode } from "@waku/sdk";
import { PeerManager } from "../node_modules/@waku/sdk/dist/peer_manager/peer_manager.js";
import { tell } from "./told.mjs";

const PUSH = "/ipfs/id/push/1.0.0";
const libp2p = new EventTarget();
const manager = new PeerManager({ libp2p, connectionManager: {} });
manager.start();
let subscriptions = 0;
manager.events.addEventListener("filter:connect", () => (subscriptions += 1));
const happens = (name, detail) => libp2p.dispatchEvent(new CustomEvent(name, { detail }));
happens("peer:identify", { peerId: "peer", protocols: [] });
happens("peer:update", { peer: { id: "peer", protocols: [FilterCodecs.SUBSCRIBE] }, previous: { protocols: [] } });
const before = subscriptions;
happens("peer:identify", { peerId: "peer", protocols: [FilterCodecs.SUBSCRIBE] }); // the next connection's
const node = await createLightNode({ autoStart: false, defaultBootstrap: false });
const speaks = node.libp2p.getProtocols().includes(PUSH);
tell(
  "a subscription once the peer serves filter",
  `${before} then, ${subscriptions} after another identify; identify push: ${speaks}`,
  before === 0 && subscriptions === 1 && !speaks
);
