/* A stand-in for libsds 0.3.0, with its functions and its manners: answers come on another thread,
 * a message that waits is returned all the same, and dependants are ready before the message that
 * they waited for. It knows causal histories and no bloom filters, timers or repair. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*Callback)(int, const char *, size_t, void *);
enum { ID = 200, MANY = 256, ROOM = 1 << 20 };

typedef struct {
  char id[ID], needs[MANY][ID];
  int count;
} Waiting;
typedef struct {
  Callback event;
  char known[MANY][ID], own[MANY][ID];
  int known_count, own_count, waiting_count;
  Waiting waiting[MANY];
} Manager;
typedef struct {
  Manager *manager;
  uint8_t *data;
  size_t length;
  char id[ID], channel[ID];
  int wraps;
  Callback callback;
  void *user;
} Call;

static int has(char list[][ID], int count, const char *id) {
  for (int i = 0; i < count; i++)
    if (!strcmp(list[i], id)) return 1;
  return 0;
}
static void emit(Manager *manager, const char *kind, const char *id) {
  char text[2 * ID + 100];
  int length = snprintf(text, sizeof text, "{\"eventType\":\"%s\",\"messageId\":\"%s\",\"channelId\":\"\"}", kind, id);
  if (manager->event) manager->event(0, text, length, NULL);
}
static int varint(const uint8_t **at, const uint8_t *end, uint64_t *value) {
  *value = 0;
  for (int shift = 0; *at < end && shift < 64; shift += 7) {
    uint8_t byte = *(*at)++;
    *value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return 1;
  }
  return 0;
}
static uint8_t *put_varint(uint8_t *at, uint64_t value) {
  for (; value > 127; value >>= 7) *at++ = (value & 127) | 128;
  *at++ = value;
  return at;
}
static uint8_t *put(uint8_t *at, int field, const void *data, size_t length) {
  at = put_varint(put_varint(at, field << 3 | 2), length);
  memcpy(at, data, length);
  return at + length;
}

static void became_known(Manager *manager, const char *id) {
  if (manager->known_count < MANY) strcpy(manager->known[manager->known_count++], id);
  for (int i = 0; i < manager->waiting_count; i++) {
    Waiting *each = &manager->waiting[i];
    int left = 0;
    for (int j = 0; j < each->count; j++) left += !has(manager->known, manager->known_count, each->needs[j]);
    if (left || !each->id[0]) continue;
    char ready[ID];
    strcpy(ready, each->id);
    each->id[0] = 0;
    became_known(manager, ready);
  }
  emit(manager, "message_ready", id);
}

static int parse(Call *call, Waiting *found, const uint8_t **content, size_t *length) {
  const uint8_t *at = call->data, *end = at + call->length;
  int seen = 0;
  memset(found, 0, sizeof *found);
  call->channel[0] = 0;
  while (at < end) {
    uint64_t key, size;
    if (!varint(&at, end, &key) || !varint(&at, end, &size)) return 0;
    if ((key & 7) == 0) continue;
    if ((key & 7) != 2 || size > (uint64_t)(end - at)) return 0;
    char *text = key >> 3 == 1 ? found->id : key >> 3 == 4 ? call->channel : NULL;
    if (text && size < ID) { memcpy(text, at, size); text[size] = 0; seen |= 1 << (key >> 3); }
    if (key >> 3 == 5) { *content = at; *length = size; seen |= 32; }
    if (key >> 3 == 3 && size > 2 && at[0] == 10 && at[1] < 128 && at[1] < size - 1 + 1 && found->count < MANY)
      memcpy(found->needs[found->count++], at + 2, at[1]);
    at += size;
  }
  return seen == (2 | 16 | 32);
}

static void wrap(Call *call) {
  Manager *manager = call->manager;
  uint8_t *data = malloc(call->length + 2000), *at = data;
  at = put(at, 1, call->id, strlen(call->id));
  at = put_varint(put_varint(at, 2 << 3), (uint64_t)time(NULL));
  if (manager->known_count) {
    uint8_t entry[2 * ID], *end = put(entry, 1, manager->known[manager->known_count - 1], strlen(manager->known[manager->known_count - 1]));
    at = put(at, 3, entry, end - entry);
  }
  at = put(put(put(at, 4, call->channel, strlen(call->channel)), 5, call->data, call->length), 6, "", 0);
  strcpy(manager->known[manager->known_count++], call->id);
  strcpy(manager->own[manager->own_count++], call->id);
  char *text = malloc(ROOM * 4), *to = text;
  for (uint8_t *each = data; each < at; each++) to += sprintf(to, each == data ? "%d" : ",%d", *each);
  call->callback(0, text, to - text, call->user);
  free(text);
  free(data);
}

static void unwrap(Call *call) {
  Manager *manager = call->manager;
  Waiting *found = malloc(sizeof *found);
  const uint8_t *content = NULL;
  size_t length = 0;
  if (!parse(call, found, &content, &length)) {
    const char *error = "error processing UNWRAP_MESSAGE request: reDeserializationError";
    call->callback(1, error, strlen(error), call->user);
    free(found);
    return;
  }
  char *text = malloc(ROOM * 4), *to = text + sprintf(text, "{\"message\":[");
  for (size_t i = 0; i < length; i++) to += sprintf(to, i ? ",%d" : "%d", content[i]);
  to += sprintf(to, "],\"channelId\":\"%s\",\"missingDeps\":[", call->channel);
  if (!has(manager->known, manager->known_count, found->id)) {
    int missing = 0;
    for (int i = 0; i < found->count; i++) {
      for (int j = 0; j < manager->own_count; j++)
        if (!strcmp(manager->own[j], found->needs[i])) {
          emit(manager, "message_sent", manager->own[j]);
          manager->own[j][0] = 0;
        }
      if (!has(manager->known, manager->known_count, found->needs[i]))
        to += sprintf(to, "%s{\"messageId\":\"%s\",\"retrievalHint\":\"\"}", missing++ ? "," : "", found->needs[i]);
    }
    if (missing && manager->waiting_count < MANY) manager->waiting[manager->waiting_count++] = *found;
    else became_known(manager, found->id);
  }
  to += sprintf(to, "]}");
  call->callback(0, text, to - text, call->user);
  free(text);
  free(found);
}

static void *work(void *argument) {
  Call *call = argument;
  if (call->wraps < 0) call->callback(0, "", 0, call->user);
  else if (call->wraps) wrap(call);
  else unwrap(call);
  free(call->data);
  free(call);
  return NULL;
}
static int later(Manager *manager, const void *data, size_t length, const char *id, const char *channel, int wraps, Callback callback, void *user) {
  Call *call = calloc(1, sizeof *call);
  *call = (Call){.manager = manager, .length = length, .wraps = wraps, .callback = callback, .user = user};
  call->data = malloc(length + 1);
  if (data) memcpy(call->data, data, length);
  if (id) strncpy(call->id, id, ID - 1);
  if (channel) strncpy(call->channel, channel, ID - 1);
  pthread_t thread;
  pthread_create(&thread, NULL, work, call);
  pthread_detach(thread);
  return 0;
}

void *SdsNewReliabilityManager(Callback callback, void *user) {
  Manager *manager = calloc(1, sizeof *manager);
  later(manager, NULL, 0, NULL, NULL, -1, callback, user);
  return manager;
}
void SdsSetEventCallback(Manager *manager, Callback callback, void *user) { (void)user; manager->event = callback; }
int SdsCleanupReliabilityManager(Manager *manager, Callback callback, void *user) {
  manager->event = NULL;
  callback(0, NULL, 0, user);
  return 0;
}
int SdsWrapOutgoingMessage(Manager *manager, const void *data, size_t length, const char *id, const char *channel, Callback callback, void *user) {
  if (!channel[0]) {
    const char *error = "libsds error: channel ID is empty string";
    callback(1, error, strlen(error), user);
    return 1;
  }
  return later(manager, data, length, id, channel, 1, callback, user);
}
int SdsUnwrapReceivedMessage(Manager *manager, const void *data, size_t length, Callback callback, void *user) {
  return later(manager, data, length, NULL, NULL, 0, callback, user);
}
int SdsMarkDependenciesMet(Manager *manager, const char **ids, size_t count, const char *channel, Callback callback, void *user) {
  (void)channel;
  for (size_t i = 0; i < count; i++) became_known(manager, ids[i]);
  return later(manager, NULL, 0, NULL, NULL, -1, callback, user);
}
int SdsStartPeriodicTasks(Manager *manager, Callback callback, void *user) {
  return later(manager, NULL, 0, NULL, NULL, -1, callback, user);
}
