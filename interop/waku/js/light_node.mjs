// A js-waku light node beside one service node.
import { yamux } from "@chainsafe/libp2p-yamux";
import { createLightNode, Protocols } from "@waku/sdk";

const SHARDS = 8;
const PEER_WAIT_MS = 300_000;
const CLOSE_STREAMS_MS = 100;

/**
 * Start a node and wait for its peer. With `stock` the peer is an unchanged go-waku, with which
 * js-waku works only by five changes on its side; without the third it falls silent beside ours, too,
 * when the node was away. `unchanged` is js-waku as it is published.
 */
export async function lightNode(
  address,
  { stock = false, unchanged = false, closeStreams = stock, clusterId = 1 } = {}
) {
  const libp2p = { filterMultiaddrs: false, hideWebSocketInfo: true };
  if (stock) libp2p.streamMuxers = [yamux()]; // (1) go-waku has no mplex, js-waku nothing else
  const node = await createLightNode({
    networkConfig: { clusterId, numShardsInCluster: SHARDS },
    bootstrapPeers: [address],
    defaultBootstrap: false,
    numPeersToUse: 1,
    autoStart: false,
    libp2p,
    lightPush: { useLegacy: stock } // (2) go-waku has no light push v3
  });
  if (!unchanged) assumeAllShards(node);
  if (stock) openNoSpareFilterStreams(node);
  if (closeStreams) closeFinishedStreams(node);
  await node.start();
  await node.waitForPeers([Protocols.LightPush, Protocols.Filter], PEER_WAIT_MS);
  return node;
}

/**
 * (3) go-waku tells its shards in a field that js-waku does not read, so it takes it for none. Our
 * node answers with both fields, but go-waku's own request comes on each new connection, too, and may
 * overwrite what the answer said: a subscription that is made in that moment is not made again.
 */
function assumeAllShards(node) {
  const service = node.libp2p.services.metadata;
  const save = service.savePeerShardInfo.bind(service);
  service.savePeerShardInfo = (id, info) =>
    save(id, info.shards?.length ? info : {
      clusterId: info.clusterId,
      shards: [...Array(SHARDS).keys()]
    });
}

/** (4) js-waku never closes its half of a filter push, and takes at most 100 of them. */
function closeFinishedStreams(node) {
  const isFinished = (stream) =>
    stream.protocol?.includes("/filter-push/") &&
    stream.readStatus === "closed" && stream.writeStatus !== "closed";
  setInterval(() => {
    for (const connection of node.libp2p.getConnections())
      for (const stream of connection.streams)
        if (isFinished(stream)) stream.close().catch(() => {});
  }, CLOSE_STREAMS_MS).unref();
}

/**
 * (5) On each connection js-waku opens a filter stream in advance and, after an outage, another one
 * to subscribe. go-waku refuses the second in a second and leaves it open, so that js-waku waits for
 * its answer for ever, takes itself for subscribed, and hears nothing any more.
 */
function openNoSpareFilterStreams(node) {
  const { streamManager } = node.filter.protocol;
  streamManager.libp2p.events.removeEventListener("peer:update", streamManager.handlePeerUpdateStreamPool);
}
