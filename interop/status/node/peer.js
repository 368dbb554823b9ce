// Seals and opens payloads with @waku/message-encryption: reads requests as JSON lines, answers each with a line.
//
//   {"do": "seal" | "open", "kind": "symmetric" | "ecies", "key": hex, "payload": hex, "signer": hex | null}
import { createInterface } from "node:readline";

// Node 20: js-waku's dependencies use Promise.withResolvers, which came with Node 22.
Promise.withResolvers ??= function () {
  const settle = {};
  const promise = new this((resolve, reject) => Object.assign(settle, { resolve, reject }));
  return { promise, ...settle };
};
const { ecies, symmetric } = await import("@waku/message-encryption");

const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const hex = (data) => (data ? Buffer.from(data).toString("hex") : null);
const encrypt = { symmetric: symmetric.encryptSymmetric, ecies: ecies.encryptAsymmetric };
const decrypt = { symmetric: symmetric.decryptSymmetric, ecies: ecies.decryptAsymmetric };

async function answer({ do: what, kind, key, payload, signer }) {
  if (what === "seal") {
    const plain = await symmetric.preCipher(bytes(payload), signer ? bytes(signer) : undefined);
    return { payload: hex(await encrypt[kind](plain, bytes(key))) };
  }
  const opened = symmetric.postCipher(await decrypt[kind](bytes(payload), bytes(key)));
  return { payload: hex(opened.payload), signer: hex(opened.sig?.publicKey) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const result = await answer(JSON.parse(line)).catch((error) => ({ error: String(error) }));
  console.log(JSON.stringify(result));
}
