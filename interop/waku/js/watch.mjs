// What js-waku does to get what it misses, as events. It changes nothing of that.
//
//   store_queried     a query has ended: by hash or by time, how many it asked for, and got
//   repair_requested  ids that go out with a message
//   push_failed       a light push that no node took

/** A node's methods; before its channels are made, which keep those that they find. */
export function watchNode({ store, lightPush }, say) {
  const query = store.queryGenerator.bind(store);
  store.queryGenerator = async function* (decoders, options) {
    const { messageHashes } = options;
    const told = { by: messageHashes ? "hash" : "time", asked: messageHashes?.length, found: 0 };
    try {
      for await (const page of query(decoders, options)) {
        told.found += page.length;
        yield page;
      }
    } catch (error) {
      told.reason = String(error?.message ?? error);
      throw error;
    } finally {
      say("store_queried", told);
    }
  };
  const push = lightPush.send.bind(lightPush);
  lightPush.send = async (...message) => {
    const result = await push(...message);
    const reasons = result.failures.map(({ error }) => error);
    if (!result.successes.length) say("push_failed", { reason: reasons.join() });
    return result;
  };
}

/** A channel's repair requests. */
export function watchRepair({ messageChannel: { repairManager } }, say) {
  const take = repairManager.getRepairRequests.bind(repairManager);
  repairManager.getRepairRequests = (...limits) => {
    const taken = take(...limits);
    if (taken.length) say("repair_requested", { message_ids: taken.map(({ messageId }) => messageId) });
    return taken;
  };
}
