// Asks a release's own FeatureControlManager: a request to UpdateFeatures a line on standard input, its answer on standard
// output. The first line of the answers is what the release's controller supports itself.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.controller.FeatureControlManager;
import org.apache.kafka.controller.QuorumFeatures;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.server.common.MetadataVersion;

public class FeatureAnswers {
    private static final String LEVEL = "metadata.version";

    public static void main(String[] arguments) throws Exception {
        Map<String, VersionRange> own = supported();
        StringBuilder answers = new StringBuilder(own.entrySet().stream()
            .map(each -> each.getKey() + ":" + each.getValue().min() + ":" + each.getValue().max())
            .sorted().collect(Collectors.joining(","))).append('\n');
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.append(answer(line.split(";", -1), own)).append('\n');
        }
        System.out.print(answers);
    }

    // QuorumFeatures.defaultFeatureMap, which later releases call defaultSupportedFeatureMap and ask about unstable ones.
    @SuppressWarnings("unchecked")
    private static Map<String, VersionRange> supported() throws Exception {
        for (Method method : QuorumFeatures.class.getMethods()) {
            if (method.getName().startsWith("default") && method.getName().endsWith("FeatureMap")) {
                Object[] unstable = method.getParameterCount() == 0 ? new Object[0] : new Object[] {false};
                return (Map<String, VersionRange>) method.invoke(null, unstable);
            }
        }
        throw new IllegalStateException("the features that a controller supports are not found");
    }

    // A line: finalised levels, brokers with their ranges, updates; name:number… by commas, brokers by slashes.
    private static String answer(String[] line, Map<String, VersionRange> own) throws Exception {
        Map<String, Short> finalised = new LinkedHashMap<>();
        for (String each : line[0].split(",")) {
            finalised.put(each.split(":")[0], Short.parseShort(each.split(":")[1]));
        }
        Object manager = manager(finalised, brokers(line[1]), own);
        Map<String, Short> levels = new HashMap<>();
        Map<String, FeatureUpdate.UpgradeType> kinds = new HashMap<>();
        for (String each : line[2].split(",")) {
            String[] part = each.split(":");
            levels.put(part[0], Short.parseShort(part[1]));
            kinds.put(part[0], FeatureUpdate.UpgradeType.fromCode(Integer.parseInt(part[2])));
        }
        return told(call(call(manager, "updateFeatures", levels, kinds, true), "response"));
    }

    private static Map<Integer, Map<String, VersionRange>> brokers(String text) {
        Map<Integer, Map<String, VersionRange>> found = new LinkedHashMap<>();
        for (String broker : text.isEmpty() ? new String[0] : text.split("/")) {
            String[] part = broker.split("=");
            Map<String, VersionRange> ranges = new HashMap<>();
            for (String each : part[1].split(",")) {
                String[] range = each.split(":");
                ranges.put(range[0], VersionRange.of(Short.parseShort(range[1]), Short.parseShort(range[2])));
            }
            found.put(Integer.parseInt(part[0]), ranges);
        }
        return found;
    }

    private static Object manager(Map<String, Short> finalised, Map<Integer, Map<String, VersionRange>> brokers,
            Map<String, VersionRange> own) throws Exception {
        Constructor<?> made = FeatureControlManager.Builder.class.getDeclaredConstructor();
        made.setAccessible(true);
        Object builder = made.newInstance();
        call(builder, "setQuorumFeatures", new QuorumFeatures(0, own, List.of(0)));
        for (Method method : builder.getClass().getDeclaredMethods()) {
            if (method.getName().equals("setClusterFeatureSupportDescriber")) {
                Class<?> type = method.getParameterTypes()[0];
                call(builder, method.getName(), Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
                    (proxy, asked, values) -> asked.getName().startsWith("broker") ? brokers.entrySet().iterator()
                        : Map.of(0, own).entrySet().iterator()));
            }
        }
        call(builder, "setMetadataVersion", MetadataVersion.fromFeatureLevel(finalised.get(LEVEL)));
        Object manager = call(builder, "build");
        for (Map.Entry<String, Short> each : finalised.entrySet()) {
            call(manager, "replay", new FeatureLevelRecord().setName(each.getKey()).setFeatureLevel(each.getValue()));
        }
        return manager;
    }

    // To 3.9 each feature has an answer of its own, later the request has one.
    private static String told(Object response) throws Exception {
        if (!(response instanceof Map)) {
            return "\t" + text(response);
        }
        StringBuilder answers = new StringBuilder();
        for (Map.Entry<?, ?> each : new TreeMap<>((Map<?, ?>) response).entrySet()) {
            answers.append(answers.length() == 0 ? "" : "\t").append(each.getKey()).append('\t').append(text(each.getValue()));
        }
        return answers.toString();
    }

    private static String text(Object error) throws Exception {
        Object message = call(error, "message");
        Object code = call(call(error, "error"), "code");
        return code + "\t" + (message == null || code.equals((short) 0) ? "" : message);
    }

    // The method of that name that takes these arguments; a further one is the epoch of a controller, or has its default.
    private static Object call(Object target, String name, Object... arguments) throws Exception {
        for (Class<?> type = target.getClass(); type != null; type = type.getSuperclass()) {
            for (Method method : type.getDeclaredMethods()) {
                int more = method.getParameterCount() - arguments.length;
                boolean mine = method.getName().equals(name) && (more == 0 || more == 1 && name.equals("updateFeatures"));
                if (mine && (arguments.length == 0 || method.getParameterTypes()[0].isInstance(arguments[0]))) {
                    Object[] all = Arrays.copyOf(arguments, arguments.length + more);
                    if (more == 1) {
                        all[arguments.length] = 0;
                    }
                    method.setAccessible(true);
                    try {
                        return method.invoke(target, all);
                    } catch (InvocationTargetException error) {
                        throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
                    }
                }
            }
        }
        return null;
    }
}
