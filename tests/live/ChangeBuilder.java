// Asks a release's own PartitionChangeBuilder: a case a line on standard input, its record a line on standard output.
// Run as a source file with the release's jars on the class path; what its releases spell differently is looked up by name.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

public class ChangeBuilder {
    private static final Uuid TOPIC = new Uuid(1, 2);

    public static void main(String[] arguments) throws Exception {
        BufferedReader cases = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder records = new StringBuilder();
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            records.append(record(line.split(";", -1))).append('\n');
        }
        System.out.print(records);
    }

    private static String record(String[] field) throws Exception {
        PartitionChangeBuilder builder = builder(registration(field), new HashSet<>(ids(field[13])), field);
        builder.setTargetReplicas(ids(field[8])).setTargetIsr(ids(field[9]));
        builder.setTargetAdding(ids(field[10])).setTargetRemoving(ids(field[11]));
        builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(field[12])));
        builder.setDefaultDirProvider(ChangeBuilder::directory);
        if (field[14].equals("1")) {
            builder.setElection(PartitionChangeBuilder.Election.UNCLEAN);
        }
        Optional<ApiMessageAndVersion> built = builder.build();
        return built.isPresent() ? text((PartitionChangeRecord) built.get().message()) : "none";
    }

    private static PartitionRegistration registration(String[] field) {
        Uuid[] directories = ids(field[0]).stream().map(ChangeBuilder::directory).toArray(Uuid[]::new);
        return new PartitionRegistration.Builder()
            .setReplicas(array(field[0])).setDirectories(directories).setIsr(array(field[1]))
            .setAddingReplicas(array(field[2])).setRemovingReplicas(array(field[3]))
            .setElr(array(field[4])).setLastKnownElr(array(field[5])).setLeader(Integer.parseInt(field[6]))
            .setLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(field[7])))
            .setLeaderEpoch(5).setPartitionEpoch(9).build();
    }

    // From 4.3 on the constructor is told whether ELR is on; before, a setter.
    private static PartitionChangeBuilder builder(PartitionRegistration partition, Set<Integer> leaders, String[] field)
            throws Exception {
        IntPredicate canLead = leaders::contains;
        boolean elr = field[15].equals("1");
        int least = Integer.parseInt(field[16]);
        MetadataVersion level = MetadataVersion.fromFeatureLevel(Short.parseShort(field[17]));
        Constructor<?> made = PartitionChangeBuilder.class.getConstructors()[0];
        if (made.getParameterCount() == 7) {
            return (PartitionChangeBuilder) made.newInstance(partition, TOPIC, 0, canLead, level, least, elr);
        }
        Object builder = made.newInstance(partition, TOPIC, 0, canLead, level, least);
        PartitionChangeBuilder.class.getMethod("setEligibleLeaderReplicasEnabled", boolean.class).invoke(builder, elr);
        return (PartitionChangeBuilder) builder;
    }

    @SuppressWarnings("unchecked")
    private static String text(PartitionChangeRecord record) throws Exception {
        List<Integer> lastKnown = null;
        for (Method method : PartitionChangeRecord.class.getMethods()) {
            if (method.getName().equalsIgnoreCase("lastKnownElr")) {
                lastKnown = (List<Integer>) method.invoke(record);
            }
        }
        return String.join(";", text(record.replicas()), text(record.isr()), text(record.addingReplicas()),
            text(record.removingReplicas()), text(record.eligibleLeaderReplicas()), text(lastKnown),
            String.valueOf(record.leader()), String.valueOf(record.leaderRecoveryState()));
    }

    private static String text(List<Integer> ids) {
        return ids == null ? "-" : ids.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    private static Uuid directory(int broker) {
        return new Uuid(7, broker + 10);
    }

    private static int[] array(String text) {
        return ids(text).stream().mapToInt(Integer::intValue).toArray();
    }

    private static List<Integer> ids(String text) {
        List<Integer> found = new ArrayList<>();
        for (String id : text.isEmpty() ? new String[0] : text.split(",")) {
            found.add(Integer.parseInt(id));
        }
        return found;
    }
}
