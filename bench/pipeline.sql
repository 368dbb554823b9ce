-- What SQL can say of journals, by DuckDB: the figures of clean journals that need no message decoded.
-- It has no evidence, no clocks and no causality, takes each participant for one life that wanted everything
-- since it began, and trusts every line. `bench/pipeline.py` runs a part after the other, each with its name first.

-- reading
create or replace table line as
select * exclude (filename), filename as path from read_json(
    '$journals/**/*.jsonl*', format = 'newline_delimited', filename = true, maximum_object_size = 33554432,
    columns = {
        event: 'VARCHAR', at_ms: 'BIGINT', channel_id: 'VARCHAR', sender_id: 'VARCHAR', message_id: 'VARCHAR',
        lamport_timestamp: 'BIGINT', content_sha256: 'VARCHAR', first_segment_id: 'VARCHAR',
        message_hash: 'VARCHAR', source: 'VARCHAR', outcome: 'VARCHAR', wanted_from_ms: 'BIGINT'
    }
);
create or replace table file as
select path, any_value(channel_id) as channel_id, any_value(sender_id) as participant_id
from line where event = 'journal_opened' group by path;
create or replace table life as
select file.channel_id, participant_id, max(at_ms) as until_ms,
    min(at_ms) filter (event = 'journal_opened') as opened_ms,
    greatest(min(wanted_from_ms), 0) as owed_from_ms
from line join file using (path) group by all;
create or replace table noted as
select file.channel_id, participant_id, message_id, line.sender_id, lamport_timestamp,
    content_sha256, at_ms, first_segment_id, message_hash
from line join file using (path)
where event = 'message_logged' and outcome is distinct from 'restored';
create or replace table delivery as
select distinct on (channel_id, participant_id, message_id) * from noted;

-- verdict
select
    (select count(*) from life) as participants,
    (select count(*) from delivery) as deliveries,
    (select count(distinct (channel_id, message_id)) from delivery) as messages,
    (
        select count(distinct (channel_id, log)) from (
            select channel_id, sha256(string_agg(
                format('{} {} {} {}', lamport_timestamp, message_id, sender_id, content_sha256),
                chr(10) order by lamport_timestamp, message_id
            )) as log
            from delivery group by channel_id, participant_id
        )
    ) as logs,
    (select count(*) from noted) - (select count(*) from delivery) as delivered_twice,
    (
        select count(*) from life
        join delivery sent on sent.channel_id = life.channel_id
            and sent.participant_id = sent.sender_id
            and sent.at_ms >= owed_from_ms and sent.at_ms + $settle_ms <= until_ms
        anti join delivery got on got.channel_id = life.channel_id
            and got.participant_id = life.participant_id and got.message_id = sent.message_id
    ) as never_delivered,
    (
        select count(*) from line join file using (path)
        anti join delivery on delivery.channel_id = file.channel_id
            and delivery.message_id = line.message_id
            and delivery.participant_id != file.participant_id
        anti join (
            select delivery.channel_id from delivery
            anti join life on life.channel_id = delivery.channel_id
                and life.participant_id = delivery.sender_id
        ) as partial on partial.channel_id = file.channel_id
        where event = 'message_acknowledged'
    ) as acknowledged_and_lost,
    (
        select count(*) from (
            select 1 from delivery group by channel_id, message_id
            having count(distinct (sender_id, lamport_timestamp, content_sha256)) > 1
        )
    ) as ids_of_several;

-- ways
create or replace table arrival as
select case when came.source = 'store' then 'store'
    when kind = 'content' then 'live' when kind = 'retry' then 'retransmission'
    else coalesce(kind, 'unknown') end as way,
    at_ms - coalesce(accepted_ms, first_ms) as latency_ms, accepted_ms is not null as is_from_log
from delivery
left join (
    select file.channel_id, message_hash, any_value(source) as kind
    from line join file using (path) where event = 'wire_out' group by all
) as went using (channel_id, message_hash)
join (
    select path, file.channel_id, participant_id, message_hash, any_value(source) as source
    from line join file using (path)
    where event = 'wire_in' and outcome in ('delivered', 'parked') group by all
) as came using (channel_id, participant_id, message_hash)
join (
    select channel_id, message_id, min(at_ms) as first_ms,
        min(at_ms) filter (first_segment_id is not null) as accepted_ms
    from delivery group by all
) as sent using (channel_id, message_id)
where first_segment_id is null;
select way, count(*), max(latency_ms) from arrival group by way order by way;

-- latency
-- of messages whose sender's journal is there, as in the view
select way, count(*), max(latency_ms) from arrival where is_from_log group by way order by way;

-- acknowledgements
select participant_id, count(*) from line join file using (path)
where event = 'message_acknowledged' group by participant_id order by participant_id;
