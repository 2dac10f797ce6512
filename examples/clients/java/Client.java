import com.axibase.tsd.client.*;
import com.axibase.tsd.model.data.*;
import com.axibase.tsd.model.data.command.*;
import com.axibase.tsd.model.data.filters.DeletePropertyFilter;
import com.axibase.tsd.model.data.series.*;
import com.axibase.tsd.model.data.series.aggregate.AggregateType;
import com.axibase.tsd.model.meta.*;
import com.axibase.tsd.model.system.*;
import com.axibase.tsd.network.*;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * The contract's Java client, atsd-api-java: its two services over HTTP, its stream of commands inside one endless HTTP request, with markers and pings, and its
 * commands over TCP.
 */
public class Client {
    static final long TEN = 1620036000000L; // 2021-05-03T10:00:00Z
    static final long HOUR = 3600000L;
    static int failed;
    static HttpClientManager manager;
    static DataService data;
    static MetaDataService meta;

    /** One group of checks. */
    interface Group {
        void run() throws Exception;
    }

    static void check(String name, Object got, Object want) {
        if (Objects.equals(got, want)) {
            System.out.println("ok   " + name);
            return;
        }
        failed++;
        System.out.println("FAIL " + name + ": got " + String.valueOf(got).replace("\n", "\\n") + ", want " + String.valueOf(want).replace("\n", "\\n"));
    }

    static void attempt(String name, Group group) {
        try {
            group.run();
        } catch (Exception e) {
            failed++;
            System.out.println("FAIL " + name + ": " + e + " at " + Arrays.stream(e.getStackTrace()).filter(t -> t.getClassName().equals("Client")).findFirst().orElse(null));
        }
    }

    /** Asks until the answer is good, for at most 20 seconds: for doors that do not answer. */
    static <T> T eventually(java.util.concurrent.Callable<T> ask, Predicate<T> good) throws Exception {
        for (int i = 0; ; i++) {
            T answer = ask.call();
            if (good.test(answer) || i == 200) {
                return answer;
            }
            Thread.sleep(100);
        }
    }

    static HttpClientManager connect(boolean skipStreamingControl, long pingMillis, boolean compress) {
        URI url = URI.create(System.getenv("URL"));
        return new HttpClientManager(new ClientConfigurationFactory(url.getScheme(), url.getHost(), url.getPort(), "/api/v1", "/api/v1", System.getenv("LOGIN"),
            System.getenv("PASSWORD"), 3000, 20000, pingMillis, false, skipStreamingControl, compress).createClientConfiguration());
    }

    static Map<String, String> map(String... pairs) {
        Map<String, String> m = new TreeMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            m.put(pairs[i], pairs[i + 1]);
        }
        return m;
    }

    static GetSeriesQuery query(String entity, String metric) {
        return new GetSeriesQuery(entity, metric, new HashMap<String, String>(), TEN, TEN + HOUR);
    }

    /** Samples as offset in seconds, =, value. */
    static String samples(List<Series> found) {
        return found.stream().flatMap(s -> s.getData().stream()).map(s -> (java.time.Instant.parse(s.getIsoDate()).toEpochMilli() - TEN) / 1000 + "=" + s.getNumericValue()
            + (s.getTextValue() == null ? "" : " " + s.getTextValue())).collect(Collectors.joining(" "));
    }

    static void seriesRoundTrip() {
        AddSeriesCommand command = new AddSeriesCommand("Java-1", "Java.Flow", "site", "North Hall");
        command.addSeries(Sample.ofTimeDouble(TEN, 1.5), Sample.ofIsoDouble("2021-05-03T10:00:30Z", -3), Sample.ofTimeDoubleText(TEN + 60000, 7, "dry run"));
        check("addSeries", data.addSeries(command), true);
        List<Series> found = data.retrieveSeries(query("java-1", "java.flow"));
        check("retrieveSeries: values", samples(found), "0=1.5 30=-3 60=7 dry run");
        Series s = found.get(0);
        check("retrieveSeries: key", s.getEntityName() + " " + s.getMetricName() + " " + s.getTags() + " " + s.getType(), "java-1 java.flow {site=North Hall} HISTORY");
        GetSeriesQuery average = query("java-1", "java.flow");
        average.setAggregateMatcher(new SimpleAggregateMatcher(new Interval(1, IntervalUnit.MINUTE), Interpolate.NONE, AggregateType.AVG, AggregateType.MAX));
        List<String> both = data.retrieveSeries(average).stream().map(a -> a.getAggregate().getType() + " " + samples(List.of(a))).sorted().collect(Collectors.toList());
        check("retrieveSeries: AVG and MAX", both, List.of("AVG 0=-0.75 60=7.0", "MAX 0=1.5 60=7.0"));
        check("retrieveSeries: limit", samples(data.retrieveSeries(query("java-1", "java.flow").setLimit(1).setRequestId("r1"))), "60=7 dry run");
        Sample in = data.retrieveSeries(query("java-1", "java.flow").setLimit(1).setTimeFormat(TimeFormat.MILLISECONDS)).get(0).getData().get(0);
        check("retrieveSeries: milliseconds", in.getTimeMillis() + " " + in.getNumericValue(), (TEN + 60000) + " 7");
        check("retrieveLastSeries", samples(data.retrieveLastSeries(query("java-1", "java.flow"))), "60=7 dry run");
        check("addSeriesCsv", data.addSeriesCsv("java-1", "time,java.a,java.b\n" + TEN + ",1,2.25\n", "tag", "v 1"), true);
        check("addSeriesCsv: stored", samples(data.retrieveSeries(query("java-1", "java.a"), query("java-1", "java.b"))), "0=1 0=2.25");
        check("addSeries: single", data.addSeries(AddSeriesCommand.createSingle("java-1", "java.one", TEN, 4)), true);
        check("retrieveSeries: single", samples(data.retrieveSeries(query("java-1", "java.one"))), "0=4");
    }

    static void seriesGet() throws Exception {
        try (java.io.InputStream in = data.querySeriesPack(Format.CSV, "java-1", "java.one", map(), TEN, TEN + HOUR, null, AggregateType.DETAIL, null, null, "entity,metric,time,value")) {
            String csv = new String(in.readAllBytes(), StandardCharsets.UTF_8).replace("\r", "").replace("\"", "");
            check("querySeriesPack", csv.trim().split("\n").length + " " + csv.contains("java-1,java.one"), "2 true");
        }
    }

    static void messages() {
        Message sent = new Message("Java-1", "valve\nopened").setType("Audit").setSource("Valve").setSeverity(Severity.WARNING).setTimestamp(TEN).setTags(map("user", "Ann"));
        check("insertMessages", data.insertMessages(sent), true);
        List<Message> found = data.retrieveMessages(new GetMessagesQuery("java-1").setStartDate(new Date(TEN)).setEndDate(new Date(TEN + 1)).setType("audit").setMinSeverity(Severity.NORMAL));
        check("retrieveMessages", found.stream().map(m -> m.getEntityName() + "|" + m.getType() + "|" + m.getSource() + "|" + m.getSeverity() + "|" + m.getTags() + "|" + m.getMessage()
            + "|" + m.getDate()).collect(Collectors.toList()), List.of("java-1|audit|valve|WARNING|{user=Ann}|valve\nopened|2021-05-03T10:00:00.000Z"));
    }

    static void properties() {
        check("insertProperties", data.insertProperties(new Property("Disk", "java-1", map("slot", "1"), map("size", "10 GB"), TEN),
            new Property("disk", "java-1", map("slot", "2"), map("size", "20 GB"), TEN)), true);
        GetPropertiesQuery ask = new GetPropertiesQuery("disk", "java-1", new Date(TEN), new Date(TEN + HOUR));
        check("retrieveProperties", plain(data.retrieveProperties(ask)), List.of("{slot=1} {size=10 GB}", "{slot=2} {size=20 GB}"));
        check("retrieveProperties: key", plain(data.retrieveProperties(ask.setKey(map("slot", "2")))), List.of("{slot=2} {size=20 GB}"));
        check("retrieveProperties: entity and type", plain(data.retrieveProperties("java-1", "disk")), List.of("{slot=1} {size=10 GB}", "{slot=2} {size=20 GB}"));
        check("retrievePropertyTypes", meta.retrievePropertyTypes("java-1", null), Set.of("disk"));
        DeletePropertyFilter one = new DeletePropertyFilter("disk", "java-1");
        one.setKey(map("slot", "1"));
        check("deleteProperties", data.deleteProperties(one), true);
        check("deleteProperties: gone", plain(data.retrieveProperties("java-1", "disk")), List.of("{slot=2} {size=20 GB}"));
    }

    static List<String> plain(List<Property> found) {
        return found.stream().map(p -> new TreeMap<>(p.getKey()) + " " + p.getTags()).sorted().collect(Collectors.toList());
    }

    /** Of an alert's severity this client knows only the number, and servers send the name. */
    static void alerts() {
        data.addSeries(AddSeriesCommand.createSingle("java-boiler", "client.temperature", TEN, 95));
        GetAlertQuery ask = new GetAlertQuery("java-boiler");
        ask.setStartDate("1970-01-01T00:00:00Z");
        ask.setEndDate("9999-12-31T23:59:59Z");
        check("retrieveAlerts", data.retrieveAlerts(ask).stream().map(a -> a.getRuleName() + " " + a.getEntityName() + " " + a.getMetricName() + " " + a.getAcknowledged() + " "
            + a.getRepeatCount()).collect(Collectors.toList()), List.of("client-hot java-boiler client.temperature false 0"));
        alertBatch(ask);
        GetAlertHistoryQuery past = new GetAlertHistoryQuery().setEntityName("java-boiler").setRuleName("client-hot").setMetricName("client.temperature").setStartTime(0L)
            .setEndTime(4294969199999L).setLimit(10);
        List<String> rows = data.retrieveAlertHistory(past).stream().map(h -> h.getRuleName() + " " + h.getEntityName() + " " + h.getValue()).collect(Collectors.toList());
        check("retrieveAlertHistory", rows.stream().filter(r -> r.contains("java-boiler")).collect(Collectors.toList()), List.of("client-hot java-boiler 95.0"));
        if (rows.size() == 1) {
            check("retrieveAlertHistory: filters", rows.size(), 1);
        } else {
            System.out.println("skip retrieveAlertHistory: filters: the server does not read the older form of this query, {\"queries\":[...]}, and answers with all rows");
        }
    }

    /** Acknowledges and deletes as this client does, with an older form of the interface. */
    static void alertBatch(GetAlertQuery ask) {
        String id = "" + data.retrieveAlerts(ask).get(0).getId();
        try {
            data.batchUpdateAlerts(BatchAlertCommand.createUpdateCommand(true, id));
        } catch (AtsdServerException e) {
            if (!e.getMessage().contains("not implemented")) {
                throw e;
            }
            System.out.println("skip batchUpdateAlerts: the server does not have PATCH of alerts");
            return;
        }
        check("batchUpdateAlerts: update", data.retrieveAlerts(ask).get(0).getAcknowledged(), true);
        data.batchUpdateAlerts(BatchAlertCommand.createDeleteCommand(id));
        check("batchUpdateAlerts: delete", data.retrieveAlerts(ask), List.of());
    }

    static void metrics() {
        Metric sent = new Metric("Java.Level").setLabel("Level").setDataType(DataType.DOUBLE).setEnabled(true).setUnits("m").setMinValue(0.0).setMaxValue(9.5)
            .setInvalidAction(InvalidAction.TRANSFORM).setTimeZone(TimeZone.getTimeZone("Europe/Berlin")).setInterpolationType(com.axibase.tsd.model.meta.InterpolationType.PREVIOUS)
            .setDescription("of the tank").setRetentionDays(30).setTags(map("team", "water"));
        check("createOrReplaceMetric", meta.createOrReplaceMetric(sent), true);
        Metric m = meta.retrieveMetric("java.level");
        check("retrieveMetric", m.getName() + " " + m.getLabel() + " " + m.getDataType() + " " + m.getUnits() + " " + m.getMinValue() + " " + m.getMaxValue() + " " + m.getInvalidAction() + " "
            + m.getTimeZone().getID() + " " + m.getRetentionDays() + " " + m.getVersioned() + " " + m.getTags(),
            "java.level Level DOUBLE m 0.0 9.5 TRANSFORM Europe/Berlin 30 false {team=water}");
        check("retrieveMetric: unknown", meta.retrieveMetric("java.unknown"), null);
        check("updateMetric", meta.updateMetric(new Metric("java.level").setLabel("Tank")), true);
        check("updateMetric: kept", meta.retrieveMetric("java.level").getLabel() + " " + meta.retrieveMetric("java.level").getUnits(), "Tank m");
        data.addSeries(AddSeriesCommand.createSingle("java-tank", "java.level", TEN, 12, "side", "A B"));
        check("retrieveSeries: TRANSFORM", samples(data.retrieveSeries(query("java-tank", "java.level"))), "0=9.5");
        check("retrieveMetrics", meta.retrieveMetrics("name LIKE 'java.lev*'", (String) null, null, TagAppender.ALL, 5).stream().map(x -> x.getName() + x.getTags()).collect(Collectors.toList()),
            List.of("java.level{team=water}"));
        check("retrieveMetrics of an entity", meta.retrieveMetrics("java-tank", (Boolean) null, "name LIKE 'java.*'", TagAppender.ALL, 5).stream().map(Metric::getName)
            .collect(Collectors.toList()), List.of("java.level"));
        check("retrieveEntityAndTags", meta.retrieveEntityAndTags("java.level", "java-tank").stream().map(x -> x.getEntityName() + x.getTags()).collect(Collectors.toList()),
            List.of("java-tank{side=A B}"));
        check("retrieveMetricSeries", meta.retrieveMetricSeries("java.level").stream().map(x -> x.getEntityName() + x.getTags()).collect(Collectors.toList()), List.of("java-tank{side=A B}"));
        check("deleteMetric", meta.deleteMetric(new Metric("java.level")), true);
        check("deleteMetric: gone", meta.retrieveMetric("java.level"), null);
        String odd = "java/rack-7(in)";
        check("createOrReplaceMetric: a name with a slash", meta.createOrReplaceMetric(new Metric(odd).setLabel("odd")) + " " + meta.retrieveMetric(odd).getLabel(), "true odd");
    }

    static void entities() {
        check("createOrReplaceEntity", meta.createOrReplaceEntity(new Entity("Java-Host").setLabel("Host").setEnabled(true).setTimeZone(TimeZone.getTimeZone("UTC"))
            .setInterpolationType(com.axibase.tsd.model.meta.InterpolationType.LINEAR).setTags(map("App", "Web Shop"))), true);
        Entity e = meta.retrieveEntity("java-host");
        check("retrieveEntity", e.getName() + " " + e.getLabel() + " " + e.getEnabled() + " " + e.getTimeZone().getID() + " " + e.getTags(), "java-host Host true UTC {app=Web Shop}");
        check("retrieveEntity: unknown", meta.retrieveEntity("java-nobody"), null);
        check("updateEntity", meta.updateEntity(new Entity("java-host").setTags(map("env", "live"))), true);
        check("updateEntity: merged", new TreeMap<>(meta.retrieveEntity("java-host").getTags()), map("app", "Web Shop", "env", "live"));
        check("retrieveEntities", meta.retrieveEntities("tags.app = 'Web Shop'", null, null, TagAppender.createTagAppender("app"), 3).stream().map(x -> x.getName() + x.getTags())
            .collect(Collectors.toList()), List.of("java-host{app=Web Shop}"));
        check("deleteEntity", meta.deleteEntity(new Entity("java-host")), true);
        check("deleteEntity: gone", meta.retrieveEntity("java-host"), null);
    }

    static void groups() {
        check("createOrReplaceEntityGroup", meta.createOrReplaceEntityGroup(new EntityGroup("Java Hosts").setTags(map("owner", "ops"))), true);
        check("retrieveEntityGroup", meta.retrieveEntityGroup("Java Hosts").getTags(), map("owner", "ops"));
        check("addGroupEntities", meta.addGroupEntities("Java Hosts", true, new Entity("java-a"), new Entity("java-b")) + " " + members(), "true [java-a, java-b]");
        check("replaceGroupEntities", meta.replaceGroupEntities("Java Hosts", true, new Entity("java-b"), new Entity("java-c")) + " " + members(), "true [java-b, java-c]");
        check("deleteGroupEntities", meta.deleteGroupEntities("Java Hosts", new Entity("java-b")) + " " + members(), "true [java-c]");
        check("deleteAllGroupEntities", meta.deleteAllGroupEntities("Java Hosts") + " " + members(), "true []");
        check("updateEntityGroup", meta.updateEntityGroup(new EntityGroup("Java Hosts").setTags(map("shift", "2"))), true);
        check("retrieveEntityGroups", meta.retrieveEntityGroups().stream().filter(g -> g.getName().equals("Java Hosts")).count(), 1L);
        check("deleteEntityGroup", meta.deleteEntityGroup(new EntityGroup("Java Hosts")) + " " + meta.retrieveEntityGroup("Java Hosts"), "true null");
    }

    static List<String> members() {
        return meta.retrieveGroupEntities("Java Hosts").stream().map(Entity::getName).sorted().collect(Collectors.toList());
    }

    /** Commands in one request, plain and compressed. */
    static void batches() {
        List<PlainCommand> commands = List.of(new InsertCommand("java-batch", "java.cmd", Sample.ofTimeDoubleText(TEN, 1.25, "a \"b\" = c"), "tag", "v 1"),
            new MessageInsertCommand("java-batch", TEN, map("type", "cmd"), "two words"), new PropertyInsertCommand("java-batch", "disk", TEN, map("k", "1"), map("v", "x y")),
            new MultipleInsertCommand("java-batch", TEN, map("site", "s"), Map.of("java.m1", 1.0, "java.m2", 2.5)), new SimpleCommand("nonsense e:java-batch"));
        for (boolean compress : new boolean[] {false, true}) {
            HttpClientManager own = connect(true, 600000, compress);
            SendCommandResult r = new DataService(own).sendBatch(commands, true).getResult();
            check("sendBatch, compressed=" + compress, r.getSuccess() + " " + r.getFail() + " " + r.getTotal() + " " + r.getStored() + " " + r.getError(), "4 1 5 4 null");
            own.close();
        }
        check("sendBatch: stored", samples(data.retrieveSeries(query("java-batch", "java.cmd"), query("java-batch", "java.m1"), query("java-batch", "java.m2"))),
            "0=1.25 a \"b\" = c 0=1 0=2.5");
    }

    /**
     * The client's stream: one request that does not end, with commands, pings when there are none, and markers that the client asks the server about. Had a marker
     * counted less than was sent, the client would close its stream and keep the commands to send them again. It compares while it sends, so the test lets it
     * ask between two bursts only.
     */
    static void stream() throws Exception {
        HttpClientManager own = connect(false, 1500, false);
        own.setCheckPeriodMillis(100);
        DataService streaming = new DataService(own);
        check("stream: opens", eventually(streaming::canSendPlainCommand, ok -> ok), true);
        int sent = 0;
        for (int burst = 0; burst < 3; burst++) {
            for (int i = 0; i < 100; i++, sent++) {
                streaming.sendPlainCommand(new InsertCommand("java-stream", "java.stream", Sample.ofTimeDouble(TEN + 1000L * sent, sent)));
            }
            int want = sent;
            List<Series> found = eventually(() -> data.retrieveSeries(query("java-stream", "java.stream")), f -> f.get(0).getData().size() == want);
            check("stream: burst " + burst + " is stored while the request is open", found.get(0).getData().size(), sent);
            check("stream: the last value", found.get(0).getData().get(sent - 1).getNumericValueAsDouble(), (double) (sent - 1));
            streaming.canSendPlainCommand();
            Thread.sleep(2000);
        }
        streaming.canSendPlainCommand();
        Thread.sleep(500);
        check("stream: markers agree with what was sent", streaming.canSendPlainCommand() + " " + streaming.removeSavedPlainCommands(), "true []");
        own.close();
    }

    static void tcp() throws Exception {
        String[] address = System.getenv("TCP").split(":");
        TcpClientManager tcp = new TcpClientManager(new TcpClientConfigurationFactory(address[0], Integer.parseInt(address[1]), true, 3000, 10000).createClientConfiguration());
        tcp.send(new InsertCommand("java-tcp", "java.tcp", Sample.ofTimeDouble(TEN, 5.5)));
        tcp.send(List.of(new InsertCommand("java-tcp", "java.tcp", Sample.ofTimeDoubleText(TEN + 1000, 6, "two\nlines")), new MessageInsertCommand("java-tcp", TEN, map(), "over TCP")));
        List<Series> found = eventually(() -> data.retrieveSeries(query("java-tcp", "java.tcp")), f -> f.get(0).getData().size() == 2);
        check("TCP commands", samples(found), "0=5.5 1=6 two\nlines");
        tcp.close();
    }

    static void refusal() {
        URI url = URI.create(System.getenv("URL"));
        HttpClientManager wrong = new HttpClientManager(new ClientConfiguration(url + "/api/v1", System.getenv("LOGIN"), "wrong"));
        try {
            check("wrong password", new MetaDataService(wrong).retrieveMetric("java.flow"), "an error");
        } catch (AtsdServerException | AtsdClientException e) {
            check("wrong password", e.getMessage(), "Bad Credentials");
        }
    }

    public static void main(String[] args) {
        manager = connect(true, 600000, false);
        data = new DataService(manager);
        meta = new MetaDataService(manager);
        attempt("series", Client::seriesRoundTrip);
        attempt("series get", Client::seriesGet);
        attempt("messages", Client::messages);
        attempt("properties", Client::properties);
        attempt("alerts", Client::alerts);
        attempt("metrics", Client::metrics);
        attempt("entities", Client::entities);
        attempt("groups", Client::groups);
        attempt("batches", Client::batches);
        attempt("stream", Client::stream);
        attempt("TCP", Client::tcp);
        attempt("refusal", Client::refusal);
        manager.close();
        System.exit(failed > 0 ? 1 : 0);
    }
}
