// A member of a group with NDNts, the third implementation: publishes `count` messages under the
// specification's names, fetches those of others, and prints JSON lines.
//
//   node peer.js SOCKET GROUP NAME COUNT
import { consume, produce } from "@ndn/endpoint";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Component, Data, Name, digestSigning } from "@ndn/packet";
import { SvSync } from "@ndn/svs";

const [socket, group, name, count] = process.argv.slice(2);
const TIMESTAMP = 0x38, SEQUENCE = 0x3a;
const emit = (line) => console.log(JSON.stringify(line));
const fail = (error) => emit({ event: "error", error: String(error) });

/** A component that holds a number of up to 48 bits, in its shortest form. */
function number(type, value) {
  const size = [1, 2, 4, 8].find((bytes) => value < 2 ** (8 * bytes));
  const bytes = Buffer.alloc(size);
  bytes.writeUIntBE(value, Math.max(0, size - 6), Math.min(size, 6));
  return new Component(type, bytes);
}

const dataName = (node, boot, seq) =>
  node.append(...new Name(group).comps, number(TIMESTAMP, boot), number(SEQUENCE, seq));

enableNfdPrefixReg(await UnixTransport.createFace({ l3: { local: true } }, socket));
const own = new Map();
produce(new Name(name).append(...new Name(group).comps), async (interest) => own.get(interest.name.valueHex));

const sync = await SvSync.create({
  syncPrefix: new Name(group), svs3: true, periodicTimeout: [2000, 0.1], suppressionPeriod: 200,
  signer: digestSigning, verifier: digestSigning,
});
// It refuses the Sync Interests of ndnd v1.5.3, whose Data has another name than the specification's.
sync.addEventListener("rxerror", (event) => fail(event.detail[1]));
sync.addEventListener("update", async ({ id, loSeqNum, hiSeqNum }) => {
  for (let seq = loSeqNum; seq <= hiSeqNum; ++seq) {
    try {
      const data = await consume(dataName(id.name, id.boot, seq), { retx: 20, verifier: digestSigning });
      const content = Buffer.from(data.content).toString("hex");
      emit({ event: "publication", name: `${id.name}`, boot: id.boot, seq, content });
    } catch (error) {
      fail(error);
    }
  }
});

const node = sync.add(new Name(name));
await new Promise((resolve) => setTimeout(resolve, 1000)); // the routes are being registered
emit({ event: "ready" });
for (let seq = 1; seq <= Number(count); ++seq) {
  const data = new Data(dataName(node.id.name, node.id.boot, seq), Buffer.from(`js ${seq}`));
  await digestSigning.sign(data);
  own.set(data.name.valueHex, data);
  node.seqNum = seq;
}
