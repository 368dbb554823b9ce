// A retrieval hint never matches: a message is stamped once for the hint and once for the wire.
import { createEncoder, messageHash } from "@waku/core";
import { proto_message } from "@waku/proto";
import { tell } from "./told.mjs";

const routing = { pubsubTopic: "/waku/2/rs/1/0", clusterId: 1, shardId: 0 };
const encoder = createEncoder({ contentTopic: "/a/1/b/proto", routingInfo: routing });
const message = { payload: Buffer.from("hello") }; // as ReliableChannel makes it: no timestamp
const hint = messageHash(encoder.pubsubTopic, await encoder.toProtoObj(message));
await new Promise((resolve) => setTimeout(resolve, 5));
const sent = proto_message.WakuMessage.decode(await encoder.toWire(message));
const onWire = messageHash(encoder.pubsubTopic, sent);
const equal = Buffer.from(hint).equals(Buffer.from(onWire));
tell("the hint is the hash on the wire", equal ? "it is" : "another hash", !equal);
