// What js-waku's ReliableChannel asks of a node, over the REST API of one: light push, filter, Store.
//
// Timestamps are nanoseconds, which JSON numbers of JavaScript cannot express: they are read and
// written as text.
const POLL_MS = 50;

const readJson = (text) =>
  JSON.parse(text.replace(/"timestamp"\s*:\s*(\d+)/g, (_, digits) => `"timestamp":"${digits}"`));

const fromJson = (message) => ({
  payload: new Uint8Array(Buffer.from(message.payload, "base64")),
  contentTopic: message.contentTopic,
  version: message.version ?? 0,
  timestamp: BigInt(message.timestamp ?? 0),
  meta: message.meta ? new Uint8Array(Buffer.from(message.meta, "base64")) : undefined,
  rateLimitProof: undefined,
  ephemeral: message.ephemeral ?? false
});

/** An object with the members of IWaku that ReliableChannel uses. */
export function restNode(url) {
  const call = async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      body,
      headers: body === undefined ? {} : { "content-type": "application/json" }
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
    return response.text();
  };
  return {
    lightPush: {
      async send(encoder, message) {
        const proto = await encoder.toProtoObj(message);
        const fields = JSON.stringify({
          payload: Buffer.from(proto.payload).toString("base64"),
          contentTopic: proto.contentTopic,
          version: proto.version,
          ephemeral: proto.ephemeral
        });
        const body = fields.replace(/}$/, `,"timestamp":${proto.timestamp}}`);
        try {
          await call("POST", "/relay/v1/auto/messages", body);
          return { successes: ["node"], failures: [] };
        } catch {
          return { successes: [], failures: [{ error: "Remote peer rejected" }] };
        }
      }
    },
    filter: {
      async subscribe(decoder, callback) {
        const topic = decoder.contentTopic;
        await call("POST", "/relay/v1/auto/subscriptions", JSON.stringify([topic]));
        const path = `/relay/v1/auto/messages/${encodeURIComponent(topic)}`;
        const poll = async () => {
          try {
            for (const message of readJson(await call("GET", path)))
              await callback(await decoder.fromProtoObj(decoder.pubsubTopic, fromJson(message)));
          } finally {
            setTimeout(poll, POLL_MS);
          }
        };
        void poll();
        return true;
      }
    },
    store: {
      async *queryGenerator([decoder], { messageHashes }) {
        const hashes = messageHashes.map((hash) => "0x" + Buffer.from(hash).toString("hex"));
        const query = new URLSearchParams({ includeData: "true", hashes: hashes.join(",") });
        const { messages } = readJson(await call("GET", `/store/v3/messages?${query}`));
        yield messages
          .filter(({ message }) => message)
          .map(({ message }) => decoder.fromProtoObj(decoder.pubsubTopic, fromJson(message)));
      }
    }
  };
}
