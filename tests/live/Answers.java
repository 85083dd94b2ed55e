// Asks a release's own ReplicationControlManager: a request to AlterPartition a line on standard input, its answer on standard
// output. The managers are those of a controller, without its log and its network. What they are made with differs from
// release to release and is not public: it is found by name.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.StaleBrokerEpochException;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

public class Answers {
    private static final String PACKAGE = "org.apache.kafka.controller.";
    private static final int DIRECTORIES_FROM = 17;
    private static final int MOST_KEPT = 50;

    // The fields of a line, in their order.
    private enum Field {
        BROKERS, LEVEL, ELR_ON, MIN_ISR, UNCLEAN,
        REPLICAS, ISR, ADDING, REMOVING, ELR, LAST_KNOWN, LEADER, RECOVERY,
        VERSION, SENDER, SENDER_EPOCH, LEADER_EPOCH, PARTITION_EPOCH, NEW_ISR, NEW_RECOVERY, PLACE;

        String of(String[] line) {
            return line[ordinal()];
        }

        int number(String[] line) {
            return Integer.parseInt(of(line));
        }

        boolean flag(String[] line) {
            return of(line).equals("1");
        }

        List<Integer> ids(String[] line) {
            return ids(of(line), 0);
        }

        // Of a list of tuples, one part of each.
        static List<Integer> ids(String text, int part) {
            List<Integer> found = new ArrayList<>();
            for (String each : text.isEmpty() ? new String[0] : text.split(",")) {
                found.add(Integer.parseInt(each.split(":")[part]));
            }
            return found;
        }
    }

    private final Object replication;
    private final Object configurations;

    public static void main(String[] arguments) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        Map<String, Answers> kept = new HashMap<>();
        StringBuilder answers = new StringBuilder();
        int number = 0;
        for (String text = requests.readLine(); text != null; text = requests.readLine()) {
            String[] line = text.split(";", -1);
            String world = Field.BROKERS.of(line) + "/" + Field.LEVEL.of(line) + "/" + Field.ELR_ON.of(line);
            if (kept.size() > MOST_KEPT) {
                kept.clear();
            }
            if (!kept.containsKey(world)) {
                kept.put(world, new Answers(line));
            }
            answers.append(kept.get(world).answer(line, number++)).append('\n');
        }
        System.out.print(answers);
    }

    private Answers(String[] line) throws Exception {
        Constructor<?> made = SnapshotRegistry.class.getConstructors()[0];
        Object registry = made.newInstance(made.getParameterTypes()[0].getConstructor().newInstance());
        Object features = features(line, registry);
        Object builder = builder("ConfigurationControlManager", registry);
        call(builder, "setKafkaConfigSchema", Class.forName("kafka.server.KafkaRaftServer").getMethod("configSchema").invoke(null));
        call(builder, "setFeatureControl", features);
        configurations = call(builder, "build");
        Object cluster = cluster(registry, features);
        register(line, cluster);
        builder = builder("ReplicationControlManager", registry);
        call(builder, "setConfigurationControl", configurations);
        call(builder, "setClusterControl", cluster);
        call(builder, "setFeatureControl", features);
        replication = call(builder, "build");
    }

    private static Object features(String[] line, Object registry) throws Exception {
        Map<String, VersionRange> supported = new HashMap<>();
        supported.put("metadata.version", VersionRange.of((short) 7, (short) 33));
        supported.put("eligible.leader.replicas.version", VersionRange.of((short) 0, (short) 1));
        MetadataVersion level = MetadataVersion.fromFeatureLevel((short) Field.LEVEL.number(line));
        Object builder = builder("FeatureControlManager", registry);
        Object quorum = Class.forName(PACKAGE + "QuorumFeatures").getConstructors()[0].newInstance(0, supported, List.of(0));
        call(builder, "setQuorumFeatures", quorum);
        call(builder, "setMetadataVersion", level);
        Object features = call(builder, "build");
        call(features, "replay", new FeatureLevelRecord().setName("metadata.version").setFeatureLevel(level.featureLevel()));
        if (Field.ELR_ON.flag(line)) {
            call(features, "replay",
                new FeatureLevelRecord().setName("eligible.leader.replicas.version").setFeatureLevel((short) 1));
        }
        return features;
    }

    private static Object cluster(Object registry, Object features) throws Exception {
        Object builder = builder("ClusterControlManager", registry);
        call(builder, "setClusterId", "cluster");
        call(builder, "setReplicaPlacer", new StripedReplicaPlacer(new Random(1)));
        call(builder, "setFeatureControlManager", features);
        for (Method method : builder.getClass().getDeclaredMethods()) {
            Class<?> type = method.getParameterCount() == 1 ? method.getParameterTypes()[0] : null;
            if (method.getName().endsWith("ShutdownHandler")) {
                call(builder, method.getName(), Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[]{type}, (a, b, c) -> null));
            } else if (method.getName().equals("setMetrics")) {
                call(builder, method.getName(), metrics(type));
            }
        }
        return call(builder, "build");
    }

    // 4.3 and later want them; of whatever they are made with, nothing is there.
    private static Object metrics(Class<?> type) throws Exception {
        Constructor<?> made = type.getConstructors()[0];
        List<Object> arguments = new ArrayList<>();
        for (Class<?> each : made.getParameterTypes()) {
            Map<Class<?>, Object> nothing = Map.of(Optional.class, Optional.empty(), Time.class, Time.SYSTEM, long.class, 0L,
                int.class, 0, boolean.class, false);
            arguments.add(nothing.get(each));
        }
        return made.newInstance(arguments.toArray());
    }

    // A broker is id:epoch:fenced:shutting down:its replicas' directory is online. Each has another directory besides.
    private static void register(String[] line, Object cluster) throws Exception {
        for (String text : Field.BROKERS.of(line).split(",")) {
            String[] part = text.split(":");
            int broker = Integer.parseInt(part[0]);
            List<Uuid> directories = new ArrayList<>(List.of(new Uuid(9, broker + 100)));
            if (part[4].equals("1")) {
                directories.add(directory(broker));
            }
            long epoch = Long.parseLong(part[1]);
            call(cluster, "replay", new RegisterBrokerRecord().setBrokerId(broker).setBrokerEpoch(epoch)
                .setIncarnationId(new Uuid(3, broker)).setFenced(part[2].equals("1"))
                .setInControlledShutdown(part[3].equals("1")).setLogDirs(directories), epoch);
        }
    }

    private String answer(String[] line, int number) throws Exception {
        String name = "topic-" + number;
        Uuid topic = new Uuid(5, number + 10);
        call(replication, "replay", new TopicRecord().setName(name).setTopicId(topic));
        call(replication, "replay", partition(line, topic));
        configure(name, "min.insync.replicas", Field.MIN_ISR.of(line));
        configure(name, "unclean.leader.election.enable", String.valueOf(Field.UNCLEAN.flag(line)));
        try {
            return told(call(replication, "alterPartition", context(line), request(line, name, topic)));
        } catch (StaleBrokerEpochException error) {
            return "77";
        } finally {
            call(replication, "replay", new RemoveTopicRecord().setTopicId(topic));
        }
    }

    private void configure(String topic, String name, String value) throws Exception {
        call(configurations, "replay",
            new ConfigRecord().setResourceType((byte) 2).setResourceName(topic).setName(name).setValue(value));
    }

    private static PartitionRecord partition(String[] line, Uuid topic) throws Exception {
        PartitionRecord record = new PartitionRecord().setTopicId(topic).setPartitionId(0)
            .setReplicas(Field.REPLICAS.ids(line)).setIsr(Field.ISR.ids(line)).setAddingReplicas(Field.ADDING.ids(line))
            .setRemovingReplicas(Field.REMOVING.ids(line)).setLeader(Field.LEADER.number(line))
            .setLeaderRecoveryState((byte) Field.RECOVERY.number(line)).setLeaderEpoch(5).setPartitionEpoch(9);
        if (Field.LEVEL.number(line) >= DIRECTORIES_FROM) {
            record.setDirectories(record.replicas().stream().map(Answers::directory).collect(Collectors.toList()));
        }
        if (!Field.ELR.of(line).isEmpty()) {
            record.setEligibleLeaderReplicas(Field.ELR.ids(line));
        }
        if (!Field.LAST_KNOWN.of(line).isEmpty()) {
            lastKnown(record, "set", Field.LAST_KNOWN.ids(line));
        }
        return record;
    }

    private static Object context(String[] line) throws Exception {
        RequestHeaderData header = new RequestHeaderData().setRequestApiVersion((short) Field.VERSION.number(line));
        Consumer<Integer> quota = changes -> { };
        for (Constructor<?> made : Class.forName(PACKAGE + "ControllerRequestContext").getConstructors()) {
            if (made.getParameterTypes()[0] == RequestHeaderData.class && made.getParameterCount() == 4) {
                return made.newInstance(header, KafkaPrincipal.ANONYMOUS, OptionalLong.empty(), quota);
            }
        }
        throw new IllegalStateException("no context of a request can be made");
    }

    private static AlterPartitionRequestData request(String[] line, String name, Uuid topic) throws Exception {
        int version = Field.VERSION.number(line);
        String place = Field.PLACE.of(line);
        AlterPartitionRequestData.PartitionData partition = new AlterPartitionRequestData.PartitionData()
            .setPartitionIndex(place.equals("no partition") ? 7 : 0).setLeaderEpoch(Field.LEADER_EPOCH.number(line))
            .setPartitionEpoch(Field.PARTITION_EPOCH.number(line));
        if (version >= 1) {
            partition.setLeaderRecoveryState((byte) Field.NEW_RECOVERY.number(line));
        }
        List<Integer> isr = Field.NEW_ISR.ids(line);
        List<Integer> epochs = Field.ids(Field.NEW_ISR.of(line), isr.isEmpty() ? 0 : 1);
        List<AlterPartitionRequestData.BrokerState> states = new ArrayList<>();
        for (int place_ = 0; place_ < isr.size(); place_++) {
            states.add(new AlterPartitionRequestData.BrokerState().setBrokerId(isr.get(place_)).setBrokerEpoch(epochs.get(place_)));
        }
        if (version >= 3) {
            partition.setNewIsrWithEpochs(states);
        } else {
            partition.setNewIsr(isr);
        }
        AlterPartitionRequestData.TopicData data = new AlterPartitionRequestData.TopicData();
        data.setPartitions(new ArrayList<>(List.of(partition)));
        boolean known = !place.equals("no topic");
        if (version >= 2) {
            data.setTopicId(known ? topic : new Uuid(66, 66));
        } else {
            call(data, "setTopicName", known ? name : "nowhere");
        }
        return new AlterPartitionRequestData().setBrokerId(Field.SENDER.number(line))
            .setBrokerEpoch(Field.SENDER_EPOCH.number(line)).setTopics(new ArrayList<>(List.of(data)));
    }

    private static String told(Object result) throws Exception {
        AlterPartitionResponseData response = (AlterPartitionResponseData) call(result, "response");
        List<?> records = (List<?>) call(result, "records");
        AlterPartitionResponseData.PartitionData part = response.topics().get(0).partitions().get(0);
        String record = records.isEmpty() ? "none" : text((PartitionChangeRecord) ((ApiMessageAndVersion) records.get(0)).message());
        return String.join(";", String.valueOf(part.errorCode()), String.valueOf(part.leaderId()),
            String.valueOf(part.leaderEpoch()), text(part.isr()), String.valueOf(part.leaderRecoveryState()),
            String.valueOf(part.partitionEpoch()), record);
    }

    private static String text(PartitionChangeRecord record) throws Exception {
        return String.join("/", text(record.replicas()), text(record.isr()), text(record.addingReplicas()),
            text(record.removingReplicas()), text(record.eligibleLeaderReplicas()), text(lastKnown(record, "")),
            String.valueOf(record.leader()), String.valueOf(record.leaderRecoveryState()));
    }

    private static String text(List<Integer> ids) {
        return ids == null ? "-" : ids.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    // 3.7 spells the field in another way.
    @SuppressWarnings("unchecked")
    private static List<Integer> lastKnown(Object record, String verb, Object... value) throws Exception {
        for (Method method : record.getClass().getMethods()) {
            if (method.getName().equalsIgnoreCase(verb + "lastKnownElr") && method.getParameterCount() == value.length) {
                Object found = method.invoke(record, value);
                return verb.isEmpty() ? (List<Integer>) found : null;
            }
        }
        throw new IllegalStateException("no last known ELR");
    }

    private static Uuid directory(int broker) {
        return new Uuid(7, broker + 10);
    }

    private static Object builder(String manager, Object registry) throws Exception {
        Constructor<?> made = Class.forName(PACKAGE + manager + "$Builder").getDeclaredConstructor();
        made.setAccessible(true);
        Object builder = made.newInstance();
        call(builder, "setSnapshotRegistry", registry);
        return builder;
    }

    // The method of that name that takes these arguments; nothing where a release has none such.
    private static Object call(Object target, String name, Object... arguments) throws Exception {
        for (Method method : target.getClass().getDeclaredMethods()) {
            if (method.getName().equals(name) && takes(method.getParameterTypes(), arguments)) {
                return invoke(method, target, arguments);
            }
        }
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(name) && takes(method.getParameterTypes(), arguments)) {
                return invoke(method, target, arguments);
            }
        }
        return null;
    }

    private static Object invoke(Method method, Object target, Object... arguments) throws Exception {
        method.setAccessible(true);
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
        }
    }

    private static boolean takes(Class<?>[] types, Object[] arguments) {
        boolean all = types.length == arguments.length;
        for (int place = 0; all && place < types.length; place++) {
            all = types[place].isPrimitive() || types[place].isInstance(arguments[place]);
        }
        return all;
    }
}
