// A reader of the vectors in JavaScript, to copy: it needs Node.js alone.
//
//   node read.mjs v1         // reads every file and checks what needs no protobuf
import assert from "node:assert";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** The cases of one file. */
export function cases(folder, kind) {
  const document = JSON.parse(readFileSync(`${folder}/${kind}.json`, "utf8"));
  assert.deepEqual([document.format, document.version], ["reliable-channel-vectors", 1]);
  return document.cases;
}

/** A bloom filter: 64-bit words, big-endian, bit i in word floor(i / 64). */
export function filterBytes(value) {
  if (value === null) return Buffer.alloc(0);
  const data = Buffer.alloc(value.bytes, value.all_ones ? 0xff : 0);
  for (const bit of value.bits ?? [])
    data[Math.floor(bit / 64) * 8 + 7 - Math.floor((bit % 64) / 8)] |= 1 << bit % 8;
  return data;
}

/** An encoded message. */
export function wireBytes(value) {
  const parts = [Buffer.from(value.before, "hex"), filterBytes(value.bloom_filter)];
  const data = Buffer.concat([...parts, Buffer.from(value.after, "hex")]);
  assert.equal(data.length, value.bytes);
  return data;
}

const folder = process.argv[2];
for (const value of cases(folder, "waku_message_hashes")) {
  const stamp = Buffer.alloc(8);
  stamp.writeBigInt64BE(BigInt(value.timestamp_ns));
  const hash = createHash("sha256");
  hash.update(value.pubsub_topic).update(Buffer.from(value.payload, "hex"));
  hash.update(value.content_topic).update(Buffer.from(value.meta, "hex")).update(stamp);
  assert.equal(hash.digest("hex"), value.hash, value.name);
}
const messages = cases(folder, "sds_messages").map(({ wire }) => wireBytes(wire));
const steps = cases(folder, "traces").flatMap((trace) => trace.steps);
const moved = steps.flatMap(({ sent, received }) => [...sent, ...received]).map(({ wire }) => wireBytes(wire));
console.log(`${messages.length} messages, ${steps.length} steps of traces with ${moved.length} messages`);
