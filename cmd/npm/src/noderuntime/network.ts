import { hasWildcard, isAll } from "./glob.js";
import { invalid } from "./validate.js";

/** Translates a pattern of the scope `network`. A host without a scheme is its ports and its look-up. */
export function networkPatterns(pattern: string, place: string): string[] {
  if (isAll(pattern)) return ["tcp://*:*", "udp://localhost:*", "dns://*"];
  const [, scheme, rest = ""] = /^(?:([a-z]+):\/\/)?(.*)$/su.exec(pattern) ?? [];
  switch (scheme) {
    case undefined: {
      const [host, port] = endpoint(rest);
      return [`tcp://${hostOf(host, pattern, place)}:${portOf(port ?? "*", pattern, place)}`, ...dnsOf(host)];
    }
    case "dns":
      return [`dns://${hostOf(rest === "**" ? "*" : rest, pattern, place)}`];
    case "tcp":
    case "udp": {
      if (isAll(rest)) return [scheme === "tcp" ? "tcp://*:*" : "udp://localhost:*"];
      const [host, port] = endpoint(rest);
      if (port === undefined) throw unclear(pattern, place, "a port is missing", `${scheme}://${host}:*`);
      return [`${scheme}://${hostOf(host, pattern, place)}:${portOf(port, pattern, place)}`];
    }
    default:
      throw unclear(pattern, place, "not tcp://HOST:PORT, dns://HOST, HOST or HOST:PORT", "tcp://*:*");
  }
}

/** Splits HOST:PORT. IPv6 addresses are in brackets. */
function endpoint(text: string): [host: string, port: string | undefined] {
  const [, host, port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/su.exec(text) ?? [];
  return host === undefined ? [text, undefined] : [host, port];
}

function hostOf(host: string, pattern: string, place: string): string {
  const name = host.toLowerCase().replace(/^\*{2,}/, "*");
  if (name === "" || hasWildcard(name.replace(/^\*(\.|$)/, ""))) {
    throw unclear(pattern, place, "a host is a name, an address, * or *.NAME", nearestHost(name));
  }
  return name;
}

function nearestHost(name: string): string {
  const labels = name.split(".");
  const literal = labels.slice(labels.findLastIndex(hasWildcard) + 1);
  return literal.length === 0 ? "tcp://*:*" : `tcp://*.${literal.join(".")}:*`;
}

/** Names are looked up; addresses are not. */
function dnsOf(host: string): string[] {
  return /^\[|^[0-9.]+$/.test(host) ? [] : [`dns://${host.toLowerCase().replace(/^\*{2,}/, "*")}`];
}

function portOf(port: string, pattern: string, place: string): string {
  if (isAll(port)) return "*";
  if (!/^[1-9][0-9]{0,4}$/.test(port) || Number(port) > 65535) {
    throw unclear(pattern, place, "a port is a number or *", pattern.replace(/:[^:]*$/, ":*"));
  }
  return port;
}

function unclear(pattern: string, place: string, why: string, nearest: string): Error {
  return invalid(place, `${JSON.stringify(pattern)}: ${why}; nearest: ${nearest}`, pattern);
}
