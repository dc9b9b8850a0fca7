import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Runs a program of the host, and returns what it has printed. */
async function output(file: string): Promise<string> {
  const { stdout, stderr } = await execute(process.execPath, [file], { timeout: 120_000 });
  assert.equal(stderr, "");
  return stdout;
}

const agentCode = `exitCode: 0
stdout: computed 20 fibonacci numbers
returned value: {"fibonacci":[0,1,1,2,3,5,8,13,21,34,55,89,144,233,377,610,987,1597,2584,4181],"sum":10945}

escape attempt exitCode: 0
escape attempt stdout: guest hostname: secure-exec
`;

const examples: [file: string, stdout: string][] = [
  ["agent-code", agentCode],
  ["child-processes", "uppercase: QUIET\nhello child\nchild's status: 3\nwords: 3\nstatus: 0 output: through a pipe\n"],
  ["code-mode", 'exit code: 0\ntotal: 71\nwrong input: input of get-price: $.name: not one of ["apples","pears","plums"]\n'],
  ["dev-server", 'listens on 127.0.0.1:3000\nhealth: 200 {"ok":true}\npage: text/plain you asked for /page?x=1\nstopped with status 143\n'],
  ["file-system", 'report: {"total":80}\nnames: factor.txt report sales.csv\nfolders: report\n'],
  ["module-loading", "Hello, package!\ndouble: 42\nsha256: 477a5439\nrequire: b.txt\nERR_MODULE_NOT_FOUND\n"],
  ["networking", "text: served /inside\nechoed: echo\nother: denied\n"],
  ["output-capture", 'pieces arrived: true\nstdout: "step fetch\\nstep build\\nstep test\\n"\nstderr: "1 warning\\n"\nexit code: 0\n'],
  ["permissions", `public file: public
vault: EACCES
token: absent
shell: EPERM
network: denied
rejected: permissions.fs.rules[0].paths[0]: "/data/*.csv": a rule about files names one file, or a folder with all that is below it; nearest: /data/**
`],
  ["plugins", "shout: HELLO GENTLE WORLD!\ncount: 3\nbroken: Error: this plugin is broken\nendless: it was killed\n"],
  ["resource-limits", "endless loop: status 137\ntoo much memory: status 137\ntoo many processes: status 7 EAGAIN\ntoo much disk: status 8 refused\nmodest: status 0 fine\n"],
  ["snippets", 'works {"logs":["[log] count: 1"],"facts":{"counter":{"count":1}}}\nfails {"logs":[],"facts":{}}\nTypeError: counter.increment is not a function\n'],
  ["typescript", "total: 15\nexit code: 0\n"],
];

for (const [name, expected] of examples) {
  test(`example ${name}`, async () => assert.equal(await output(`examples/${name}.mjs`), expected));
}

/** Returns a folder in which secure-exec is an alias of this package, as npm i secure-exec@npm:gaol installs it. */
function aliased(t: TestContext): string {
  const dir = mkdtempSync(path.join(tmpdir(), "gaol-npm-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const installed = path.join(dir, "node_modules", "secure-exec");
  mkdirSync(installed, { recursive: true });
  for (const part of ["package.json", "dist"]) cpSync(part, path.join(installed, part), { recursive: true });
  symlinkSync(path.resolve("node_modules/ws"), path.join(dir, "node_modules", "ws"));
  return dir;
}

for (const [what, create] of [["as it is", "NodeRuntime.create()"], ["with the network", 'NodeRuntime.create({ permissions: { network: "allow" } })']] as const) {
  test(`a program of secure-exec runs ${what}`, async (t) => {
    const program = readFileSync("examples/agent-code.mjs", "utf8").replace('from "gaol"', 'from "secure-exec"').replace("NodeRuntime.create()", create);
    assert.ok(program.includes('from "secure-exec"') && program.includes(create));
    const file = path.join(aliased(t), "program.mjs");
    writeFileSync(file, program);
    assert.equal(await output(file), agentCode);
  });
}
