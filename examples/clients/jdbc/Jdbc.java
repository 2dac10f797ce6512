import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.util.*;

/** The contract's JDBC driver, atsd-jdbc: metadata, statements, prepared statements, a stream of a million rows, inserts and updates, errors. */
public class Jdbc {
    static final long TEN = 1620036000000L; // 2021-05-03T10:00:00Z
    static final int MANY = 1_000_000;
    static int failed;

    /** One group of checks. */
    interface Group {
        void run(Connection c) throws Exception;
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
        attempt(name, "", group);
    }

    static void attempt(String name, String settings, Group group) {
        URI url = URI.create(System.getenv("URL"));
        String target = "jdbc:atsd://" + url.getHost() + ":" + url.getPort() + ";secure=false;tables=jdbc.*" + settings;
        try (Connection c = DriverManager.getConnection(target, System.getenv("LOGIN"), System.getenv("PASSWORD"))) {
            group.run(c);
        } catch (Exception | LinkageError e) {
            failed++;
            System.out.println("FAIL " + name + ": " + e + " at " + Arrays.stream(e.getStackTrace()).filter(t -> t.getClassName().equals("Jdbc")).findFirst().orElse(null));
        }
    }

    static void post(String path, String body) throws Exception {
        HttpURLConnection c = (HttpURLConnection) URI.create(System.getenv("URL") + path).toURL().openConnection();
        c.setRequestProperty("Authorization", "Basic " + Base64.getEncoder().encodeToString((System.getenv("LOGIN") + ":" + System.getenv("PASSWORD")).getBytes(StandardCharsets.UTF_8)));
        c.setDoOutput(true);
        try (OutputStream out = c.getOutputStream()) {
            out.write(body.getBytes(StandardCharsets.UTF_8));
        }
        if (c.getResponseCode() != 200) {
            throw new IllegalStateException(path + " answers " + c.getResponseCode());
        }
    }

    static void load() throws Exception {
        post("/api/v1/command", "metric m:jdbc.flow p:double l:\"Flow rate\" u:l/min\n"
            + "entity e:jdbc-1 l:\"Pump One\" t:site=North\n"
            + "series e:jdbc-1 m:jdbc.flow=10 t:line=a d:2021-05-03T10:00:00Z\n"
            + "series e:jdbc-1 m:jdbc.flow=14.5 t:line=a d:2021-05-03T10:00:30Z x:jdbc.flow=\"high, \"\"very\"\"\"\n"
            + "series e:jdbc-2 m:jdbc.flow=3 d:2021-05-03T10:00:00Z\n");
        for (int from = 0; from < MANY; from += MANY / 5) {
            StringBuilder b = new StringBuilder("[{\"entity\":\"jdbc-1\",\"metric\":\"jdbc.many\",\"data\":[");
            for (int i = from; i < from + MANY / 5; i++) {
                b.append(i > from ? "," : "").append("{\"t\":").append(TEN + i * 1000L).append(",\"v\":").append(i % 1000).append('}');
            }
            post("/api/v1/series/insert", b.append("]}]").toString());
        }
    }

    /** All rows, cells joined by blanks. */
    static String rows(ResultSet r) throws SQLException {
        StringJoiner lines = new StringJoiner("|");
        int width = r.getMetaData().getColumnCount();
        while (r.next()) {
            StringJoiner cells = new StringJoiner(" ");
            for (int i = 1; i <= width; i++) {
                cells.add(String.valueOf(r.getObject(i)));
            }
            lines.add(cells.toString());
        }
        return lines.toString();
    }

    static String one(Connection c, String query) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(query)) {
            return rows(r);
        }
    }

    static void connection(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        check("connect: isValid", c.isValid(5), true);
        check("metadata: driver", m.getDriverName() != null && m.getDriverMajorVersion() > 0, true);
        check("metadata: database version", m.getDatabaseProductVersion() != null && !m.getDatabaseProductVersion().isEmpty(), true);
        List<String> tables = new ArrayList<>();
        try (ResultSet r = m.getTables(null, null, "jdbc.%", null)) {
            while (r.next()) {
                tables.add(r.getString("TABLE_NAME"));
            }
        }
        Collections.sort(tables);
        check("getTables", tables.toString(), "[jdbc.flow, jdbc.many]");
        Map<String, String> columns = new LinkedHashMap<>();
        try (ResultSet r = m.getColumns(null, null, "jdbc.flow", null)) {
            while (r.next()) {
                columns.put(r.getString("COLUMN_NAME"), r.getString("TYPE_NAME"));
            }
        }
        check("getColumns: value", columns.get("value"), "double");
        check("getColumns: names", columns.keySet().containsAll(List.of("time", "datetime", "value", "text", "metric", "entity", "tags")), true);
    }

    static void queries(Connection c) throws Exception {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT time, datetime, value, text, entity, tags.line FROM \"jdbc.flow\" WHERE entity = 'jdbc-1' ORDER BY time")) {
            ResultSetMetaData m = r.getMetaData();
            check("query: labels", m.getColumnLabel(1) + " " + m.getColumnLabel(6), "time tags.line");
            check("query: types", m.getColumnTypeName(1) + " " + m.getColumnTypeName(3) + " " + m.getColumnTypeName(4), "bigint double varchar");
            check("query: first row", r.next() + " " + r.getLong("time") + " " + r.getTimestamp("datetime").getTime() + " " + r.getDouble("value") + " " + r.getString("text") + " " + r.getString("entity") + " "
                + r.getString("tags.line"), "true " + TEN + " " + TEN + " 10.0 null jdbc-1 a");
            check("query: text with quotes", r.next() + " " + r.getString("text") + " " + r.next(), "true high, \"very\" false");
        }
        check("query: aggregates", one(c, "SELECT entity, count(*), avg(value), max(value) FROM \"jdbc.flow\" GROUP BY entity ORDER BY entity"), "jdbc-1 2 12.25 14.5|jdbc-2 1 3 3");
        check("query: period", one(c, "SELECT time, sum(value) FROM \"jdbc.flow\" GROUP BY PERIOD(1 MINUTE)"), TEN + " 27.5");
        check("query: no table", one(c, "SELECT 1 + 1, 'a''b', 7"), "2.0 a'b 7");
        check("query: entity fields", one(c, "SELECT entity.label, entity.tags.site, metric.units FROM \"jdbc.flow\" WHERE entity = 'jdbc-1' LIMIT 1"), "Pump One North l/min");
        check("query: atsd_entity", one(c, "SELECT name FROM atsd_entity WHERE name LIKE 'jdbc%' ORDER BY name"), "jdbc-1|jdbc-2");
        try (Statement s = c.createStatement()) {
            s.setMaxRows(1);
            check("maxRows", rows(s.executeQuery("SELECT value FROM \"jdbc.flow\" ORDER BY value DESC")), "14.5");
        }
    }

    static void prepared(Connection c) throws Exception {
        try (PreparedStatement s = c.prepareStatement("SELECT value FROM \"jdbc.flow\" WHERE entity = ? AND value > ? AND datetime >= ? ORDER BY time")) {
            s.setString(1, "jdbc-1");
            s.setDouble(2, 9.5);
            s.setTimestamp(3, new Timestamp(TEN + 1));
            check("prepared: timestamp", rows(s.executeQuery()), "14.5");
        }
        try (PreparedStatement s = c.prepareStatement("SELECT value FROM \"jdbc.flow\" WHERE entity = ? AND value > ? AND datetime = ?")) { // one that was read to its end cannot run again
            s.setString(1, "jdbc-2");
            s.setInt(2, 2);
            s.setString(3, "2021-05-03T10:00:00Z");
            check("prepared: text and integer", rows(s.executeQuery()), "3.0");
        }
    }

    static void stream(Connection c) throws Exception {
        long rows = 0, sum = 0, last = 0, begin = System.nanoTime();
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT time, value FROM \"jdbc.many\"")) {
            while (r.next()) {
                rows++;
                sum += (long) r.getDouble(2);
                check0(r.getLong(1) > last);
                last = r.getLong(1);
            }
        }
        check("stream: a million rows", rows + " " + sum + " " + last, MANY + " " + (MANY / 1000L * 499500L) + " " + (TEN + (MANY - 1) * 1000L));
        System.out.println("     " + rows * 1_000_000_000L / (System.nanoTime() - begin) + " rows a second");
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT time, value FROM \"jdbc.many\"")) {
            check("stream: left early", r.next() && r.next(), true);
        }
        check("stream: the connection works on", one(c, "SELECT count(*) FROM \"jdbc.many\""), "1000000");
    }

    static void check0(boolean ascending) {
        if (!ascending) {
            throw new IllegalStateException("times do not ascend");
        }
    }

    static void writes(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            check("insert", s.executeUpdate("INSERT INTO \"jdbc.level\" (entity, datetime, value, tags.tank) VALUES ('jdbc-3', '2021-05-03T10:00:00Z', 12.5, 'C')"), 1);
            check("insert: stored", one(c, "SELECT entity, value, tags.tank FROM \"jdbc.level\""), "jdbc-3 12.5 C");
            s.executeUpdate("UPDATE \"jdbc.level\" SET value = 13 WHERE entity = 'jdbc-3' AND datetime = '2021-05-03T10:00:00Z' AND tags.tank = 'C'"); // sent as SQL: no count
            check("update: stored", one(c, "SELECT value FROM \"jdbc.level\""), "13.0");
        }
        try (PreparedStatement s = c.prepareStatement("INSERT INTO \"jdbc.level\" (entity, time, value, text, tags) VALUES (?, ?, ?, ?, ?)")) {
            for (int i = 0; i < 3; i++) {
                s.setString(1, "jdbc-4");
                s.setLong(2, TEN + i * 1000);
                s.setDouble(3, i + 0.5);
                s.setString(4, "note " + i);
                s.setString(5, "tank=D;side=left");
                s.addBatch();
            }
            check("batch", Arrays.toString(s.executeBatch()), "[1, 1, 1]");
            check("batch: stored", one(c, "SELECT value, text, tags.side FROM \"jdbc.level\" WHERE entity = 'jdbc-4' ORDER BY time"), "0.5 note 0 left|1.5 note 1 left|2.5 note 2 left");
        }
    }

    static String message(Connection c, String query) {
        try {
            return one(c, query);
        } catch (SQLException e) {
            return e.getMessage();
        }
    }

    static void errors(Connection c) {
        check("error: an unknown metric is a warning of the driver, without rows", message(c, "SELECT value FROM \"jdbc.nosuch\""), "");
        check("error: column", message(c, "SELECT nope FROM \"jdbc.flow\"").contains("Unexpected expression: 'nope' at line 1 position 7"), true);
        check("error: syntax", message(c, "SELECT FROM").contains("Syntax error at line 1 position"), true);
    }

    public static void main(String[] args) throws Exception {
        Class.forName("com.axibase.tsd.driver.jdbc.AtsdDriver");
        load();
        attempt("connection", Jdbc::connection);
        attempt("queries", Jdbc::queries);
        attempt("prepared", Jdbc::prepared);
        attempt("stream", Jdbc::stream);
        attempt("stream from a file", ";strategy=file", c -> check("file: count of rows", one(c, "SELECT value FROM \"jdbc.many\" LIMIT 5"), "0.0|1.0|2.0|3.0|4.0"));
        attempt("writes", Jdbc::writes);
        attempt("errors", Jdbc::errors);
        System.exit(failed > 0 ? 1 : 0);
    }
}
