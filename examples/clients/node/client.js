'use strict';
// The contract's Node.js client, atsd-api: its services, with the calls that its documentation shows. It sends a JSON body with every request, GET included.

const { isDeepStrictEqual, inspect } = require('node:util');
const api = require('atsd-api');
require('npmlog').level = 'silent';

const options = { url: process.env.URL, user: process.env.LOGIN, password: process.env.PASSWORD };
const TEN = Date.parse('2021-05-03T10:00:00Z');
const HOUR = { startDate: '2021-05-03T10:00:00Z', endDate: '2021-05-03T11:00:00Z' };
let failed = 0;

function check(name, got, want) {
  if (isDeepStrictEqual(got, want)) {
    console.log('ok   ' + name);
    return;
  }
  failed++;
  console.log(`FAIL ${name}: got ${inspect(got, { depth: 9, breakLength: Infinity })}, want ${inspect(want, { depth: 9, breakLength: Infinity })}`);
}

// call gives [status, body] of a method that takes a callback last.
function call(service, method, ...args) {
  return new Promise((resolve, reject) => service[method](...args, (error, response, body) => (error ? reject(error) : resolve([response.statusCode, body]))));
}

const series = new api.Series(options);
const messages = new api.Messages(options);
const properties = new api.Properties(options);
const alerts = new api.Alerts(options);
const metrics = new api.Metrics(options);
const entities = new api.Entities(options);
const groups = new api.EntityGroups(options);

async function seriesRoundTrip() {
  const data = [{ d: '2021-05-03T10:00:00.000Z', v: 51 }, { d: '2021-05-03T10:00:30.000Z', v: 52.5 }, { t: TEN + 60000, v: -1 }];
  check('insertData', await call(series, 'insertData', 'node.temperature', 'Node-1', { site: 'A B' }, data), [200, undefined]);
  const [status, found] = await call(series, 'queryDetail', 'node.temperature', 'node-1', {}, HOUR.startDate, HOUR.endDate);
  check('queryDetail', [status, found.entity, found.metric, found.tags, found.type, found.data], [200, 'node-1', 'node.temperature', { site: 'A B' }, 'HISTORY',
    [{ d: '2021-05-03T10:00:00.000Z', v: 51 }, { d: '2021-05-03T10:00:30.000Z', v: 52.5 }, { d: '2021-05-03T10:01:00.000Z', v: -1 }]]);
  const [, dates] = await call(series, 'queryDetail', 'node.temperature', 'node-1', { site: 'A B' }, new Date(TEN + 1), new Date(TEN + 60000));
  check('queryDetail by Date', dates.data, [{ d: '2021-05-03T10:00:30.000Z', v: 52.5 }]);
  const [, average] = await call(series, 'queryStatistic', 'node.temperature', 'node-1', {}, HOUR.startDate, HOUR.endDate, api.Series.statistic.AVG,
    { count: 1, unit: api.Series.unit.MINUTE });
  check('queryStatistic', [average.aggregate.type, average.data], ['AVG', [{ d: '2021-05-03T10:00:00.000Z', v: 51.75 }, { d: '2021-05-03T10:01:00.000Z', v: -1 }]]);
  const versioned = [{ d: '2021-05-03T10:00:00.000Z', v: 50, version: { status: 'provisional', source: 'gateway-1' } }];
  check('insertData with versions', await call(series, 'insertData', 'node.versioned', 'node-1', {}, versioned), [200, undefined]);
  const [, versions] = await call(series, 'query', [{ metric: 'node.versioned', entity: 'node-1', versioned: true, ...HOUR }]);
  check('query with versions', versions[0].data.map((s) => [s.v, s.version.source, s.version.status]), [[50, 'gateway-1', 'provisional']]);
  check('query of a bad date', (await call(series, 'query', [{ metric: 'node.temperature', entity: 'node-1', startDate: 'x', endDate: 'y' }]))[0], 400);
}

async function messageRoundTrip() {
  const sent = { entity: 'node-1', type: 'Build', source: 'CI', severity: 'MAJOR', date: '2021-05-03T10:00:00.000Z', tags: { job: 'Api' }, message: 'failed' };
  check('messages.insert', (await call(messages, 'insert', [sent]))[0], 200);
  const [, found] = await call(messages, 'query', [{ entity: 'node-1', type: 'build', ...HOUR }]);
  check('messages.query', found.map((m) => [m.entity, m.type, m.source, m.severity, m.date, m.tags, m.message]),
    [['node-1', 'build', 'ci', 'MAJOR', '2021-05-03T10:00:00.000Z', { job: 'Api' }, 'failed']]);
}

async function propertyRoundTrip() {
  const sent = { type: 'type-1', entity: 'node-1', key: { server_name: 'server', user_name: 'system' }, tags: { 'name-1': 'value-1' }, date: '2021-05-03T10:00:00.000Z' };
  check('properties.insert', (await call(properties, 'insert', [sent]))[0], 200);
  check('properties.query', await call(properties, 'query', [{ type: 'type-1', entity: 'node-1', key: {}, ...HOUR }]), [200, [sent]]);
  check('properties.typeQuery', await call(properties, 'typeQuery', 'node-1'), [200, ['type-1']]);
  check('properties.getPropertyTypes', await call(properties, 'getPropertyTypes', 'node-1'), [200, ['type-1']]);
  await call(properties, 'delete', [{ type: 'type-1', entity: 'node-1', key: sent.key }]);
  check('properties.delete', await call(properties, 'query', [{ type: 'type-1', entity: 'node-1', key: {}, ...HOUR }]), [200, []]);
}

async function alertLife() {
  const ask = [{ entity: 'node-boiler', startDate: '1970-01-01T00:00:00Z', endDate: '9999-12-31T23:59:59Z' }];
  await call(series, 'insertData', 'client.temperature', 'node-boiler', {}, [{ t: TEN, v: 95 }]);
  const [, open] = await call(alerts, 'query', ask);
  check('alerts.query', open.map((a) => [a.rule, a.severity, a.value, a.acknowledged]), [['client-hot', 'CRITICAL', 95, false]]);
  check('alerts.update', (await call(alerts, 'update', [{ id: open[0].id, acknowledged: true }]))[0], 200);
  check('alerts.query after update', (await call(alerts, 'query', ask))[1].map((a) => a.acknowledged), [true]);
  check('alerts.delete', (await call(alerts, 'delete', [{ id: open[0].id }]))[0], 200);
  check('alerts.query after delete', await call(alerts, 'query', ask), [200, []]);
  check('alerts.historyQuery', (await call(alerts, 'historyQuery', ask))[1].map((h) => [h.type, h.value]), [['OPEN', 95]]);
}

async function metricSettings() {
  check('metrics.create', (await call(metrics, 'create', 'node.level', { label: 'Level', dataType: 'DOUBLE', enabled: true, tags: { team: 'water' } }))[0], 200);
  const [, m] = await call(metrics, 'get', 'node.level');
  check('metrics.get', [m.name, m.label, m.dataType, m.enabled, m.tags], ['node.level', 'Level', 'DOUBLE', true, { team: 'water' }]);
  check('metrics.update', (await call(metrics, 'update', 'node.level', { units: 'm' }))[0], 200);
  const [, changed] = await call(metrics, 'get', 'node.level');
  check('metrics.get after update', [changed.label, changed.units], ['Level', 'm']);
  check('metrics.list', (await call(metrics, 'list'))[1].filter((x) => x.name === 'node.level').length, 1);
  check('metrics.delete', [(await call(metrics, 'delete', 'node.level'))[0], (await call(metrics, 'get', 'node.level'))[0]], [200, 404]);
}

async function entitySettings() {
  check('entities.create', (await call(entities, 'create', 'node-host', { enabled: true, tags: { app: 'shop' } }))[0], 200);
  const [, e] = await call(entities, 'get', 'node-host');
  check('entities.get', [e.name, e.enabled, e.tags], ['node-host', true, { app: 'shop' }]);
  check('entities.update', (await call(entities, 'update', 'node-host', { tags: { env: 'live' } }))[0], 200);
  check('entities.get after update', (await call(entities, 'get', 'node-host'))[1].tags, { app: 'shop', env: 'live' });
  check('entities.list', (await call(entities, 'list'))[1].filter((x) => x.name === 'node-host').length, 1);
  check('entities.delete', [(await call(entities, 'delete', 'node-host'))[0], (await call(entities, 'get', 'node-host'))[0]], [200, 404]);
}

async function entityGroups() {
  check('groups.create', (await call(groups, 'create', 'node-hosts', { tags: { owner: 'ops' } }))[0], 200);
  check('groups.addEntities', (await call(groups, 'addEntities', 'node-hosts', ['node-a', 'node-b']))[0], 200);
  const [, g] = await call(groups, 'get', 'node-hosts');
  check('groups.get', [g.name, g.tags], ['node-hosts', { owner: 'ops' }]);
  check('groups.update', (await call(groups, 'update', 'node-hosts', { tags: { shift: '2' } }))[0], 200);
  // The client asks for entity-groups/ here, with a slash at the end.
  const list = await new Promise((resolve, reject) => groups.list((error, response, body) => (error ? reject(error) : resolve([response.statusCode, body]))));
  check('groups.list', [list[0], Array.isArray(list[1]) && list[1].some((x) => x.name === 'node-hosts')], [200, true]);
  check('groups.delete', [(await call(groups, 'delete', 'node-hosts'))[0], (await call(groups, 'get', 'node-hosts'))[0]], [200, 404]);
}

async function main() {
  for (const part of [seriesRoundTrip, messageRoundTrip, propertyRoundTrip, alertLife, metricSettings, entitySettings, entityGroups]) {
    try {
      await part();
    } catch (error) {
      failed++;
      console.log(`FAIL ${part.name}: ${error.stack.split('\n').slice(0, 3).join(' ')}`);
    }
  }
  process.exit(failed ? 1 : 0);
}

main();
