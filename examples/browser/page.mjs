// A chat in a browser: unmodified js-waku, whose only peer is the node of program.py.
//
// The address of that node stands behind the page's own: http://127.0.0.1:…/#/ip4/127.0.0.1/tcp/…/ws/p2p/…
import { createLightNode, Protocols, ReliableChannel } from "@waku/sdk";

const NETWORK = { clusterId: 1, numShardsInCluster: 8 };
const CONTENT_TOPIC = "/reliable-channel/1/browser/proto";
const CHANNEL_ID = "browser";
const NAME = `browser-${Math.random().toString(36).slice(2, 8)}`;

const status = (text) => { document.querySelector("#status").textContent = text; };
const log = (text) => {
  const line = document.createElement("li");
  line.textContent = text; // not innerHTML: anybody may have written it
  document.querySelector("#log").append(line);
};

async function main() {
  const node = await createLightNode({
    networkConfig: NETWORK,
    defaultBootstrap: false,
    bootstrapPeers: [decodeURIComponent(location.hash.slice(1))],
    numPeersToUse: 1,
    libp2p: {
      // In a browser js-waku dials wss at public names alone. Ours is ws on this machine.
      filterMultiaddrs: false,
      connectionGater: { denyDialMultiaddr: () => false }
    }
  });
  await node.waitForPeers([Protocols.LightPush, Protocols.Filter, Protocols.Store], 30_000);

  const topic = { contentTopic: CONTENT_TOPIC };
  const channel = await ReliableChannel.create(
    node, CHANNEL_ID, NAME, node.createEncoder(topic), node.createDecoder(topic)
  );
  channel.addEventListener("message-received", ({ detail }) =>
    log(new TextDecoder().decode(detail.payload)));
  channel.addEventListener("message-acknowledged", () => status(`${NAME}: acknowledged`));
  document.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const input = document.querySelector("#text");
    channel.send(new TextEncoder().encode(`${NAME}: ${input.value}`));
    log(`${NAME}: ${input.value}`);
    input.value = "";
  });
  status(`${NAME}: connected`);
}

main().catch((error) => status(`failed: ${error.message}`));
