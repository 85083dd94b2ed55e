import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileOutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.metadata.ClientQuotaRecord;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Writes a metadata log with Kafka's own classes: a record of each JSON line of standard input that this release knows.
 *
 *     python -m tests.kraft.every_record KAFKA_LIBS VERSION
 *
 * runs it and keeps the log and what kafka-dump-log prints of it in tests/kraft/data.
 */
public class EveryRecord {
    static final long TIME = 1_700_000_000_000L;
    static final int EPOCH = 5;
    static long offset = 0;
    static FileChannel out;

    public static void main(String[] args) throws Exception {
        out = new FileOutputStream(args[0]).getChannel();
        leaderChange();
        ObjectMapper mapper = new ObjectMapper();
        List<SimpleRecord> records = new ArrayList<>();
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            JsonNode line = mapper.readTree(lines.nextLine());
            MetadataRecordType type = type(line.get("type").asText());
            short version = line.get("version").shortValue();
            if (type != null && version <= type.highestSupportedVersion()) {
                records.add(record(MetadataJsonConverters.readJson(line.get("data"), type.id(), version), version));
            }
            if (records.size() == 7) {
                batch(records);
            }
        }
        for (double value : new double[] {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, -0.0}) {
            records.add(record(new ClientQuotaRecord().setKey("k").setValue(value), (short) 0));
        }
        batch(records);
        voters();
        out.close();
    }

    static MetadataRecordType type(String name) {
        try {
            return MetadataRecordType.valueOf(name);
        } catch (IllegalArgumentException unknown) {
            return null;
        }
    }

    static SimpleRecord record(ApiMessage message, short version) {
        ApiMessageAndVersion both = new ApiMessageAndVersion(message, version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(both, cache));
        MetadataRecordSerde.INSTANCE.write(both, cache, new ByteBufferAccessor(buffer));
        buffer.flip();
        return new SimpleRecord(TIME + offset, (ByteBuffer) null, buffer);
    }

    static void batch(List<SimpleRecord> records) throws Exception {
        SimpleRecord[] all = records.toArray(new SimpleRecord[0]);
        append(MemoryRecords.withRecords(offset, Compression.NONE, EPOCH, all), all.length);
        records.clear();
    }

    static void append(MemoryRecords records, int count) throws Exception {
        ByteBuffer buffer = records.buffer();
        while (buffer.hasRemaining()) {
            out.write(buffer);
        }
        offset += count;
    }

    static void leaderChange() throws Exception {
        LeaderChangeMessage message = new LeaderChangeMessage().setLeaderId(1);
        message.setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1), new LeaderChangeMessage.Voter().setVoterId(2)));
        append(MemoryRecords.withLeaderChangeMessage(offset, TIME, EPOCH, ByteBuffer.allocate(256), message), 1);
    }

    static void voters() throws Exception {
        KRaftVersionRecord version = new KRaftVersionRecord().setKRaftVersion((short) 1);
        append(MemoryRecords.withKRaftVersionRecord(offset, TIME, EPOCH, ByteBuffer.allocate(256), version), 1);
        VotersRecord.EndpointCollection endpoints = new VotersRecord.EndpointCollection();
        endpoints.add(new VotersRecord.Endpoint().setName("CONTROLLER").setHost("host").setPort(65535));
        VotersRecord.KRaftVersionFeature feature = new VotersRecord.KRaftVersionFeature();
        VotersRecord.Voter voter = new VotersRecord.Voter().setVoterId(1).setVoterDirectoryId(new Uuid(3, 4));
        voter.setEndpoints(endpoints).setKRaftVersionFeature(feature.setMinSupportedVersion((short) 0).setMaxSupportedVersion((short) 1));
        VotersRecord message = new VotersRecord().setVoters(List.of(voter));
        append(MemoryRecords.withVotersRecord(offset, TIME, EPOCH, ByteBuffer.allocate(256), message), 1);
    }
}
