// A query of 30 days, which is what a late joiner's first one is, leaves out its last 24 hours.
import { createDecoder } from "@waku/core";
import { Store } from "../node_modules/@waku/sdk/dist/store/store.js";
import { tell } from "./told.mjs";

const HOUR_MS = 3_600_000;
const now = Date.now();
const asked = [];
const store = Object.create(Store.prototype);
store.protocol = { maxTimeLimit: 24 * HOUR_MS };
const routing = { pubsubTopic: "/waku/2/rs/1/0", clusterId: 1, shardId: 0 };
const { queryOptions } = store.buildQueryParams([createDecoder("/a/1/b/proto", routing)], {
  timeStart: new Date(now - 30 * 24 * HOUR_MS),
  timeEnd: new Date(now)
});
for (const { timeEnd } of queryOptions) asked.push(timeEnd.getTime());
const leftOutHours = (now - Math.max(...asked)) / HOUR_MS;
tell("a query up to now", `a query up to ${leftOutHours} hours before now`, leftOutHours >= 24);
