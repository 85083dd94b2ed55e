import java.io.File;
import java.nio.ByteBuffer;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.metadata.MetadataRecordSerde;

/** Decodes a metadata log with Kafka's own classes, CRC checked; prints "records nanoseconds cpu-nanoseconds" of each round. */
public class KafkaDecode {
    public static void main(String[] args) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(new File(args[0]).toPath()));
        MetadataRecordSerde serde = new MetadataRecordSerde();
        for (int round = 0; round < Integer.parseInt(args[1]); round++) {
            long start = System.nanoTime();
            long cpu = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            long count = 0;
            for (RecordBatch batch : MemoryRecords.readableRecords(bytes.duplicate()).batches()) {
                batch.ensureValid();
                List<Object> messages = new ArrayList<>();
                for (Record record : batch) {
                    if (!batch.isControlBatch()) {
                        messages.add(serde.read(new ByteBufferAccessor(record.value()), record.valueSize()));
                    }
                }
                count += batch.isControlBatch() ? 1 : messages.size();
            }
            System.out.println(count + " " + (System.nanoTime() - start) + " "
                + (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - cpu));
        }
    }
}
