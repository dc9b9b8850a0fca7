// Code generated from the server's table of operations by make generate. DO NOT EDIT.

/** The WebSocket subprotocol: the name and version of the frames. */
export const protocol = "gaol.v2";

/** The most bytes of a frame. */
export const maxFrame = 33554432;

/** How many bytes may be sent on a stream before the receiver returns credit. */
export const window = 262144;

/** The most bytes of a frame of standard input. */
export const maxChunk = 65536;

/** The most requests without a result. */
export const maxRequests = 256;

/** The most calls without a reply that the server sends. */
export const maxCalls = 1024;

/** Kinds of frames that clients send. */
export const send = { request: 1, cancel: 2, stdin: 3, credit: 4, answer: 5, failure: 6, signal: 7 } as const;

/** Kinds of frames that clients receive. */
export const receive = { credit: 4, result: 16, error: 17, stdout: 18, stderr: 19, event: 20, call: 21, abandon: 22 } as const;

/** The number of a stream in credit frames. */
export const stream = { stdin: 0, stdout: 1, stderr: 2, events: 3 } as const;

/** Whether operations are allowed. */
export type Mode = "allow" | "deny";

/** A rule of a scope. The last rule that matches decides. */
export interface Rule<Operation extends string> {
  mode: Mode;

  /** The operations that the rule is about. By default all of its scope. */
  operations?: readonly Operation[];
}

/** A rule about files: places are `/folder/**` or one file. */
export interface PathRule<Operation extends string> extends Rule<Operation> {
  paths?: readonly string[];
}

/** A rule with patterns. */
export interface PatternRule<Operation extends string> extends Rule<Operation> {
  patterns?: readonly string[];
}

/** A scope: one mode for all, or rules. Without `default`, what no rule matches is denied. */
export type Scope<R> = Mode | { default?: Mode; rules: readonly R[] };

/** What sandboxed programs may do. Omitted scopes use the default: everything inside the sandbox, with its own localhost, and no other host. */
export interface Permissions {
  /** Files and folders of the guest's own tree. Paths: an absolute path; * and ? match within one element, ** matches any elements, P/** is P and all below it. */
  fs?: Scope<PathRule<"read" | "write" | "stat" | "readdir" | "create_dir" | "rm" | "rename" | "symlink" | "readlink" | "chmod" | "truncate" | "execute" | "*">>;
  /** Sockets, except those between the guest's own processes. Patterns: tcp://HOST:PORT, udp://HOST:PORT or dns://NAME; PORT may be *, HOST and NAME may be * or *.NAME. */
  network?: Scope<PatternRule<"fetch" | "connect" | "listen" | "dns" | "*" | "http">>;
  /** Programs the guest starts. Patterns: the absolute path of a program; P/** is all programs below P. */
  childProcess?: Scope<PatternRule<"spawn" | "*">>;
  /** Other processes of the guest. */
  process?: Scope<Rule<"signal" | "inspect" | "*">>;
  /** Variables of the environment. Patterns: a variable's name; * matches any characters and ? one. */
  env?: Scope<PatternRule<"read" | "*">>;
}

/** Cause is why a run ended, unless its program exited. */
export type Cause = "timeout" | "cpu" | "memory" | "pids" | "output" | "canceled" | "signal" | "moved" | "lost";

/** GuestError is why a program or a snippet failed, in a form for its author. Everything comes from the guest, except for the following names. If no error of the guest ended a snippet, Name is one of "TimeoutError", "OutOfMemoryError", "LimitError" (another of Limits), "CanceledError", "SignalError", "ExitError" (process.exit with another code than 0) and "UnsettledError" (an await that never settles). Name is empty if the thrown value is not an Error. */
export interface GuestError {
  name: string;
  message: string;
  /** With the snippet's own lines and columns; may be empty. */
  stack: string;
  /** The lines of the snippet around the position, if it is known. */
  frame?: string;
  /** Code is the error's property code, such as "ENOENT", or a number as text. It may be empty. */
  code?: string;
  /** Properties are its other own enumerable properties that have JSON, such as errno and path: at most 32, of 4 KiB each. Getters are not called. */
  properties?: Record<string, unknown>;
  /** Cause is its property cause, nested at most 4 deep. A cause that is not an error has only a Message. */
  cause?: GuestError;
  /** Errors are the first 8 errors of an AggregateError, or the two of a SuppressedError. A GuestError contains at most 16 others. None occurs twice. */
  errors?: GuestError[];
  /** Denied is the rule that denied the connection or look-up that caused an evaluation's error, such as "network.default", or the limit that left no space. It may be empty. */
  denied?: string;
  /** Text is the message with the messages of the causes and the rule that denied the operation; absent if it is "name: message". */
  text?: string;
}

/** NetworkUsage is a run's use of external hosts. Traffic with localhost does not count. */
export interface NetworkUsage {
  /** That the rules allow. */
  connections: number;
  /** Questions to the resolver. */
  lookups: number;
  /** Connections and look-ups that were refused. */
  denied: number;
  /** From servers. */
  bytesIn: number;
  /** To servers. */
  bytesOut: number;
}

/** Usage is what all processes of a run together use. The run's cgroup counts all but Network. */
export interface Usage {
  /** User and system time. */
  cpuMs: number;
  /** Bytes. */
  peakMemoryBytes: number;
  /** Concurrent tasks; 0 where the kernel does not report it (before Linux 6.1). */
  pids: number;
  /** Of external hosts. */
  network?: NetworkUsage;
}

/** Truncated marks which fields of a Result are incomplete. */
export interface Truncated {
  stdout: boolean;
  stderr: boolean;
  denials: boolean;
  calls?: boolean;
}

/** Call describes a call of a host function. */
export interface Call {
  /** Such as "api.get". */
  name: string;
  /** Wall-clock time on the host, including its time in the queue. */
  ms: number;
  /** Bytes of their JSON. */
  argumentsBytes: number;
  /** Bytes of its JSON; 0 for a call that failed. */
  resultBytes: number;
  /** The error that the guest got, or why the result cannot be encoded as JSON; empty on success. */
  error: string;
}

/** Denial is an operation that permissions denied to a run, or a limit that a failed run has reached. Its target is the guest's text, for display only. */
export interface Denial {
  /** Scope is a scope of permissions. For a limit it is "limits", Operation is "disk", "files" or "memory", Target describes the limit, and Rule is its field in requests, such as "limits.diskBytes". */
  scope: string;
  /** "socket" if the denied socket neither connects nor listens yet. */
  operation: string;
  /** Target is a path, or the kind of a socket. It is empty if the operation has none, such as a fork, or if the kernel did not report it. It has at most 256 bytes of valid UTF-8. */
  target: string;
  /** Address is set if the rules allow the name in Target and refuse the address that it resolves to, such as a private one, which a rule must name. */
  address?: string;
  /** Rule is the rule that denied it, such as "fs.rules[2]" or "fs.default". Other names stand for options: "mounts" for named unix sockets, which a sandbox with mounts lacks by default; "limits.connections" and similar for limits of the network; "quota." and a name for a quota; "hostPorts" for ports of the host: the program failed because nothing in the sandbox listens on the port of localhost. */
  rule: string;
  /** How often. */
  count: number;
  source: string;
}

/** Run describes a run that has ended, including a program that throws, exits with another code than 0, or exceeds a limit. */
export interface Run {
  /** Exit status; 128+n for a guest that signal n killed. */
  exitCode: number;
  /** Name of the signal that killed it, such as "SIGKILL"; empty if none did. */
  signal: string;
  /** Why it ended, unless its program exited. */
  cause: Cause | "";
  /** JSON text of the last __return; nil when nothing was returned. */
  value?: unknown;
  /** Error is the uncaught error that ended a program of Run, Exec or SpawnCode; nil if it ended otherwise. It comes from the guest. Standard error contains the same, except for its Properties. */
  error?: GuestError;
  /** Wall-clock time before its turn: see Options.MaxConcurrentRuns. */
  queuedMs?: number;
  /** Wall-clock time from its turn to the last process reaped. */
  durationMs: number;
  usage: Usage;
  truncated: Truncated;
  /** Calls are the calls of host functions (Options.Bindings), in the order in which they arrived: the first 1,000. */
  calls?: Call[];
  /** Denials are the operations that permissions denied to the run, in the order of their first occurrence: at most 64 different ones. If the run failed, the last ones are the limits of disk, files and memory that it has reached. */
  denials: Denial[];
  /** Launcher is the launcher that started the run. LauncherReason is why it differs from Options.Launcher; empty if it does not. */
  launcher: string;
  launcherReason?: string;
}

/** Timeout is the time limit of a run. */
export interface Timeout {
  /** Wall-clock time limit. By default 30,000. */
  timeoutMs?: number | undefined;
  /** Instead of timeoutMs: the longest that the server allows. */
  maxTimeout?: boolean | undefined;
}

/** Start describes how a program starts. */
export interface Start extends Timeout {
  /** The permissions of the run, by scope: fs, network, childProcess, process, env. In a sandbox they can only restrict it further. */
  permissions?: Permissions | undefined;
  /** Its arguments: of a Node program, process.argv from its third element on. */
  args?: readonly string[] | undefined;
  /** Environment variables. */
  env?: Readonly<Record<string, string>> | undefined;
  /** The working directory. By default /workspace, or that of the sandbox. */
  cwd?: string | undefined;
  /** Standard input; empty by default. */
  stdin?: string | undefined;
}

/** Program is code to run and how to start it. */
export interface Program extends Start {
  /** JavaScript, TypeScript or JSX. */
  code: string;
  /** The program's file name in its working directory, or an absolute path, from whose folder imports begin. Its extension selects the language: .mjs, .cjs, .ts, .tsx, ... */
  name?: string | undefined;
  /** The module format; by default, auto, it depends on the name and the syntax. detect is auto for the text of a file: CommonJS unless the syntax requires ES modules. */
  format?: "auto" | "esm" | "cjs" | "detect" | undefined;
}

/** Limits are limits of the runs of a sandbox, and of its tree. Zero means the default. */
export interface Limits {
  /** Memory of a run. By default 256 MiB. It is rounded up to a multiple of 64 MiB, above 512 MiB of 256 MiB. */
  memoryBytes?: number | undefined;
  /** Processors that a run keeps busy. By default 1. */
  cpus?: number | undefined;
  /** Processor time of a run. By default without limit. */
  cpuTimeMs?: number | undefined;
  /** Processes and threads of a run. By default 64. */
  pids?: number | undefined;
  /** Open files of a process. By default 1,024. */
  openFiles?: number | undefined;
  /** Bytes written to the tree. By default 64 MiB. */
  diskBytes?: number | undefined;
  /** Files and folders in the tree. By default 65,536. */
  files?: number | undefined;
  /** Captured bytes of each output. By default 16 MiB. */
  outputBytes?: number | undefined;
  /** Bytes of the returned value. By default 16 MiB. */
  valueBytes?: number | undefined;
}

/** Mount is a folder of the server's machine. */
export interface Mount {
  /** The path below the folder that the operator allows. */
  source: string;
  /** The path in the sandbox. */
  target: string;
  /** Read-only (the default), writable if you may write there, or a private copy on write. */
  access?: "ro" | "rw" | "cow" | undefined;
}

/** NodeModules is a folder of packages that a sandbox shows: in JSON the host's path as a string, or an object. */
export interface NodeModules {
  /** A folder of the server's machine, or snapshot:NAME. */
  hostPath: string;
  /** Where the sandbox shows it, such as /tmp/node_modules. By default node_modules in the working directory. */
  guestPath?: string | undefined;
}

/** Tree describes the content and the limits of a sandbox. */
export interface Tree {
  /** The name of an image of yours, or else of the server. By default the server's called default. */
  image?: string | undefined;
  /** A snapshot of yours with the initial content of the sandbox's folders. */
  snapshot?: string | undefined;
  /** Text files, by path in the sandbox. */
  files?: Readonly<Record<string, string>> | undefined;
  /** Other files, by path in the sandbox. */
  fileBytes?: Readonly<Record<string, Uint8Array>> | undefined;
  limits?: Limits | undefined;
  /** What confines the sandbox: one of the names that the server allows, such as native or runc. By default the server's choice. */
  isolation?: string | undefined;
  /** Allow writes to writable mounts only. */
  readOnly?: boolean | undefined;
  hostname?: string | undefined;
  /** Folders of the server's machine, if its operator allows that. */
  mounts?: readonly Mount[] | undefined;
  nodeModules?: string | NodeModules | undefined;
  /** Integers of globals and results of functions that a JavaScript number cannot hold become BigInts, and BigInts become integers of JSON. By default both are an error. */
  bigInts?: boolean | undefined;
  /** Ports of the localhost of the server's machine, if its operator allows them, that the sandbox's own localhost leads to. The permissions must allow to connect to them. */
  hostPorts?: readonly number[] | undefined;
}

/** RunRequest is a program with a new sandbox. */
export interface RunRequest extends Program, Tree {
}

/** Command is a program of the image and how to start it. */
export interface Command extends Start {
  /** A program of the image, or the path of one in the sandbox. */
  command: string;
}

/** CommandRequest is a program of the image with a new sandbox. */
export interface CommandRequest extends Command, Tree {
}

/** LogLevel is the console method that printed a line. */
export type LogLevel = "debug" | "log" | "info" | "warn" | "error" | "stdout" | "stderr";

/** LogLine is a line that a snippet printed. */
export interface LogLine {
  level: LogLevel;
  /** As Node prints it, without the final newline; it may contain newlines. */
  text: string;
  /** Since the beginning of the evaluation, by the host's clock. */
  ms: number;
}

/** EvaluationTruncated marks incomplete lists. */
export interface EvaluationTruncated {
  logs: boolean;
  calls: boolean;
  denials: boolean;
}

/** Evaluation is the result of a snippet. */
export interface Evaluation {
  /** JSON text of the snippet's value; nil if it has none, or is undefined. */
  value?: unknown;
  /** Why the value of the last expression, such as a server, cannot be encoded as JSON; otherwise empty. */
  noValue?: string;
  /** Nil if it did not fail. */
  error: GuestError | null;
  /** Console's lines and other output, in the order of arrival. */
  logs: LogLine[];
  /** Of host functions, in the order of arrival. */
  calls: Call[];
  /** As Result.Duration. */
  durationMs: number;
  /** Why the process ended, unless its program exited. */
  cause: Cause | "";
  usage: Usage;
  /** As Result.Denials. */
  denials: Denial[];
  truncated: EvaluationTruncated;
}

/** Cell is code to evaluate. */
export interface Cell extends Timeout {
  /** A snippet as models write it: JavaScript, TypeScript or JSX, with or without Markdown's fences. In a context it sees the declarations of earlier cells. */
  code: string;
  /** Variables of the snippet. */
  globals?: Readonly<Record<string, unknown>> | undefined;
  /** Bytes of JSON that its value may have. By default 1 MiB. */
  maxOutput?: number | undefined;
  /** Lines of console to keep. By default 100. */
  maxLogs?: number | undefined;
  /** Characters of one line. By default 1,000. */
  maxLogLength?: number | undefined;
  /** Return the value as a string, as Node's REPL prints it. By default as JSON. */
  form?: "text" | "colors" | undefined;
}

/** Snippet is code to evaluate in a new process. */
export interface Snippet extends Cell {
  /** As for a run. */
  permissions?: Permissions | undefined;
  /** Environment variables. */
  env?: Readonly<Record<string, string>> | undefined;
  /** The working directory. */
  cwd?: string | undefined;
}

/** EvaluateRequest is a snippet with a new sandbox. */
export interface EvaluateRequest extends Snippet, Tree {
}

/** InSandbox is the input of an operation in a sandbox. */
export interface InSandbox {
  /** The sandbox. */
  sandbox: string;
}

/** ProgramIn is the input of runIn and execIn. */
export interface ProgramIn extends InSandbox, Program {
}

/** CommandIn is the input of commandIn. */
export interface CommandIn extends InSandbox, Command {
}

/** SnippetIn is the input of evaluateIn. */
export interface SnippetIn extends InSandbox, Snippet {
}

/** BatchError is the error of a batch run. */
export interface BatchError {
  /** As in the response of a request that fails. */
  code: string;
  /** The HTTP status of such a response. */
  status: number;
  detail: string;
}

/** BatchRun describes a batch run. One that is done has either a result or an error, for an hour. */
export interface BatchRun {
  /** Its name in other requests. */
  key: string;
  state: "queued" | "running" | "done";
  submitted: Date;
  /** How often it has begun. */
  attempts?: number;
  /** When it was done. */
  done?: Date;
  /** How it ended, as for a run. Its cause can also be lost: it has begun 20 times, and no machine has completed it. */
  result?: Run;
  /** Why it could not be run. */
  error?: BatchError;
}

/** SubmitRequest is a batch run to submit: a program, or a command, in a new sandbox. */
export interface SubmitRequest extends Start, Tree {
  /** Names the batch run. By HTTP, the header Idempotency-Key has it. A repetition with the same key and request is the same batch run. By default a random key. */
  idempotencyKey?: string | undefined;
  /** JavaScript, TypeScript or JSX. Either this or command. */
  code?: string | undefined;
  /** The program's file name, as for a run. */
  name?: string | undefined;
  /** The module format, as for a run. */
  format?: "auto" | "esm" | "cjs" | "detect" | undefined;
  /** A program of the image, or the path of one in the sandbox. */
  command?: string | undefined;
}

/** InBatch is the input of an operation on a batch run. */
export interface InBatch {
  /** The key of the batch run. */
  key: string;
}

/** WaitBatchIn is the input of waitBatchRun. */
export interface WaitBatchIn extends InBatch {
  /** How long to wait. By default until the end. */
  timeoutMs?: number | undefined;
}

/** SandboxInfo describes a sandbox. */
export interface SandboxInfo {
  /** Its name in other requests. */
  id: string;
  created: Date;
  /** When it is deleted, unless it is used before. */
  expires: Date;
  /** When it is deleted at the latest. */
  lifetimeEnd: Date;
  /** What confines it, as in the request. */
  isolation: string;
  /** Its processes are stopped until it is resumed. */
  paused?: boolean;
  /** Active runs, processes and contexts. */
  processes: number;
  /** Rules that the server's kernel does not enforce. */
  missing?: string[];
}

/** SandboxRequest is a sandbox to create. */
export interface SandboxRequest extends Tree {
  /** What its runs may do, by scope: fs, network, childProcess, process, env. Each is "allow", "deny", or an object with a default and rules, such as {"network": {"default": "deny", "rules": [{"mode": "allow", "patterns": ["tcp://registry.npmjs.org:443"]}]}}. By default everything inside the sandbox, with its own localhost, and no other host. */
  permissions?: Permissions | undefined;
  /** Variables of all programs. */
  globals?: Readonly<Record<string, unknown>> | undefined;
  /** Environment variables of all runs. */
  env?: Readonly<Record<string, string>> | undefined;
  /** The working directory. By default /workspace. */
  cwd?: string | undefined;
  /** How long the sandbox lives without use. The default, and the maximum, is the server's. */
  idleTimeoutMs?: number | undefined;
  /** How long it lives at most. The default, and the maximum, is the server's. */
  lifetimeMs?: number | undefined;
}

/** MissingNodes is embedded in lists that all nodes of a fleet contribute to. */
export interface MissingNodes {
  /** Nodes of a fleet that did not reply in time: the list lacks their part. Absent if it is complete. */
  missing?: string[];
}

/** SandboxList is a list of sandboxes. */
export interface SandboxList extends MissingNodes {
  sandboxes: SandboxInfo[];
}

/** Resources counts the kernel objects of a jail's runs. */
export interface Resources {
  /** Of runs, processes and contexts, with their descendants. */
  runningProcesses: number;
  /** Descriptors of all processes together. */
  openFds: number;
  /** Open sockets of all kinds. */
  sockets: number;
  /** TCP sockets that listen. */
  socketListeners: number;
  /** TCP sockets that are connected. */
  socketConnections: number;
  /** Open pipes, including standard input and output. */
  pipes: number;
  /** Open terminals. */
  ptys: number;
  /** Memory of all processes together. */
  memoryBytes: number;
  /** Bytes written to the tree. */
  diskBytes: number;
  /** Files and folders written to the tree. */
  files: number;
  /** There are more than 16,384 descriptors; the rest are not counted. */
  truncated: boolean;
}

/** ResourceUsage counts the resources that a sandbox uses. */
export interface ResourceUsage extends Resources {
  /** Processes and contexts of the HTTP API that have ended and are kept. */
  exitedProcesses: number;
}

/** ProcessUsage is the usage of a process. */
export interface ProcessUsage extends Usage {
  /** Memory in use now; 0 after the end. */
  memoryBytes: number;
}

/** ProcessInfo describes a process. */
export interface ProcessInfo {
  /** Its name in other requests. It is not used again. */
  id: string;
  /** Its process ID inside the sandbox, which may be used again. */
  pid: number;
  state: "running" | "ended";
  /** The command, or the name of the program. */
  program: string;
  /** Its arguments, unless they have more than 4 KiB. */
  args: string[];
  started: Date;
  /** Whether it runs on a terminal. */
  terminal: boolean;
  usage: ProcessUsage;
  /** The number of its newest event; 0 if there is none. */
  lastEventId: number;
  /** When it ended. */
  ended?: Date;
  /** How it ended, without its output, which the events have. */
  result?: Run;
  /** Why there is no result although it has ended. */
  failure?: string;
}

/** Terminal describes the terminal of a process: a pseudo-terminal of the guest, /dev/pts/N, that controls the process's session. The process has job control, /dev/tty, and signals by keys, such as SIGINT by "\x03". Its output is untrusted: the caller must filter escape sequences before showing it on a terminal of the host. All runs of a runtime belong to one user, and can open each other's terminals. A runtime can have at most 64 terminals, including the guests' own: beyond that Spawn's error wraps ENOSPC. */
export interface Terminal {
  /** Its height in characters. By default 24. */
  rows?: number | undefined;
  /** Its width in characters. By default 80. */
  cols?: number | undefined;
  /** The variable TERM. By default xterm-256color. */
  term?: string | undefined;
}

/** ProcessRequest is a process to start: a program, or a command. */
export interface ProcessRequest {
  /** JavaScript, TypeScript or JSX. Either this or command. */
  code?: string | undefined;
  /** The program's file name, as for a run. */
  name?: string | undefined;
  /** The module format, as for a run. */
  format?: "auto" | "esm" | "cjs" | "detect" | undefined;
  /** A program of the image, or the path of one in the sandbox. */
  command?: string | undefined;
  /** As for a run. */
  permissions?: Permissions | undefined;
  /** Its arguments. */
  args?: readonly string[] | undefined;
  /** Environment variables. */
  env?: Readonly<Record<string, string>> | undefined;
  /** The working directory. */
  cwd?: string | undefined;
  /** Wall-clock time limit. By default the process lives as long as its sandbox. */
  timeoutMs?: number | undefined;
  /** Gives the process a terminal instead of pipes. All output is then stdout. */
  terminal?: Terminal | undefined;
  /** What happens while readers are slow or absent: the oldest events are dropped once there is more than 1 MiB of them (the default), or the process waits while no reader has got the last 512 KiB. */
  whenFull?: "drop" | "wait" | undefined;
}

/** SpawnIn is the input of spawn. */
export interface SpawnIn extends InSandbox, ProcessRequest {
}

/** ProcessList is a list of processes. */
export interface ProcessList {
  processes: ProcessInfo[];
}

/** InProcess is the input of an operation on a process. */
export interface InProcess extends InSandbox {
  /** The process. */
  process: string;
}

/** WaitIn is the input of waitProcess. */
export interface WaitIn extends InProcess {
  /** How long to wait. By default until the end. */
  timeoutMs?: number | undefined;
}

/** SignalIn is the input of signalProcess. */
export interface SignalIn extends InProcess {
  /** Its name, such as SIGTERM. SIGKILL ends the process with all its descendants. */
  signal: string;
  /** Send it to the process group that the process leads. */
  group?: boolean | undefined;
}

/** ResizeIn is the input of resizeProcess. */
export interface ResizeIn extends InProcess {
  /** Height in characters. */
  rows: number;
  /** Width in characters. */
  cols: number;
}

/** Input is what to write to a process's standard input: text or bytes. */
export interface Input {
  /** Text to write, of at most 1 MiB. */
  text?: string | undefined;
  /** Bytes to write, instead of text: at most 1 MiB. */
  bytes?: Uint8Array | undefined;
  /** Close the input afterwards. On a terminal this types Ctrl-D. */
  close?: boolean | undefined;
}

/** StdinIn is the input of writeProcess. */
export interface StdinIn extends InProcess, Input {
}

/** FollowIn is the input of followProcess. */
export interface FollowIn extends InProcess {
  /** The number of the last event that the client has got. By default the events begin with the oldest that is kept. */
  lastEventId?: number | undefined;
}

/** ContextInfo describes a context. */
export interface ContextInfo {
  /** Its name in other requests. */
  id: string;
  state: "running" | "ended";
  created: Date;
  /** Cells that are evaluated or wait for their turn. */
  cells: number;
  /** Why it has ended. */
  reason?: string;
  /** The exit code, if it has exited. */
  exitCode?: number;
}

/** ContextRequest is a context to create. */
export interface ContextRequest {
  /** Variables of all cells. */
  globals?: Readonly<Record<string, unknown>> | undefined;
  /** Instead of idleTimeoutMs: the longest that the server allows. */
  maxIdleTimeout?: boolean | undefined;
  /** As for a run. */
  permissions?: Permissions | undefined;
  /** Environment variables. */
  env?: Readonly<Record<string, string>> | undefined;
  /** The working directory. */
  cwd?: string | undefined;
  /** How long it lives without a cell. By default 600,000. It ends with its sandbox, too. */
  idleTimeoutMs?: number | undefined;
  /** Keep the value of the last cell in the variable _, as Node's REPL does. */
  lastValue?: boolean | undefined;
}

/** ContextIn is the input of createContext. */
export interface ContextIn extends InSandbox, ContextRequest {
}

/** ContextList is a list of contexts. */
export interface ContextList {
  contexts: ContextInfo[];
}

/** InContext is the input of an operation on a context. */
export interface InContext extends InSandbox {
  /** The context. */
  context: string;
}

/** Interrupted is the result of [Context.Interrupt]. */
export interface Interrupted {
  /** How many there were. */
  cells: number;
}

/** Completion are the names that can complete the last name of a line. */
export interface Completion {
  /** The end of the line that all names begin with. */
  prefix: string;
  /** At most 1,000, in alphabetical order. They come from the guest. */
  names: string[];
}

/** CompleteIn is the input of completeInContext. */
export interface CompleteIn extends InContext {
  /** Code up to the cursor. */
  line: string;
}

/** CellIn is the input of evaluateCell. */
export interface CellIn extends InContext, Cell {
}

/** FileInfo describes a file. */
export interface FileInfo {
  /** Its path in the sandbox. Bytes that are not UTF-8 are replaced. */
  path: string;
  /** The path, if it is not UTF-8. */
  pathBytes?: Uint8Array;
  type: "file" | "folder" | "link" | "fifo" | "socket" | "device";
  /** In bytes. */
  size: number;
  /** Its permissions, in octal. */
  mode: string;
  /** When its content was changed, by the guest's claim. */
  modified: Date;
  /** The text of a link. Listings omit it. */
  target?: string;
  /** The text, if it is not UTF-8. */
  targetBytes?: Uint8Array;
}

/** InFile is the input of an operation on a file. */
export interface InFile extends InSandbox {
  /** An absolute, clean path in the sandbox. In a query, its bytes need not be UTF-8. */
  path?: string | undefined;
  /** Instead of path: its bytes, if they are not UTF-8. */
  pathBytes?: Uint8Array | undefined;
}

/** ReadIn is the input of readFile. */
export interface ReadIn extends InFile {
  /** The byte to begin at. By default 0. */
  offset?: number | undefined;
  /** How many bytes to read at most. By default all. */
  limit?: number | undefined;
}

/** FileMode holds the permissions of a new file or folder. */
export interface FileMode {
  /** Permissions of a new file or folder, in octal, from 1 to 777. By default 644, and 755 for a folder. */
  mode?: string | undefined;
}

/** WriteIn is the input of writeFile. */
export interface WriteIn extends InFile, FileMode {
  /** Make missing parent folders. */
  createParents?: boolean | undefined;
}

/** FileRemove selects what removeFile removes. */
export interface FileRemove {
  /** Remove a folder with its content. */
  recursive?: boolean | undefined;
}

/** RemoveIn is the input of removeFile. */
export interface RemoveIn extends InFile, FileRemove {
}

/** FileStat selects what statFile describes. */
export interface FileStat {
  /** Describe a link itself. */
  links?: boolean | undefined;
}

/** StatIn is the input of statFile. */
export interface StatIn extends InFile, FileStat {
}

/** FileList is a listing of a folder. */
export interface FileList {
  files: FileInfo[];
  /** There are more files than the limit, deeper folders than 256, or folders that the guest's user may not read. */
  truncated: boolean;
}

/** FolderList selects files to list. */
export interface FolderList {
  /** List everything below the folder, without following links. */
  recursive?: boolean | undefined;
  /** How many files to list at most. */
  limit?: number | undefined;
  /** The name of folders below the folder that are listed without their content, such as node_modules. */
  exclude?: string | undefined;
}

/** ListIn is the input of listFiles. */
export interface ListIn extends InFile, FolderList {
}

/** FolderMake describes a folder to make. */
export interface FolderMake extends FileMode {
  /** Make missing parent folders. An existing folder is no error then. */
  createParents?: boolean | undefined;
}

/** FolderIn is the input of makeFolder. */
export interface FolderIn extends InFile, FolderMake {
}

/** MoveIn is the input of moveFile. */
export interface MoveIn extends InSandbox {
  /** The path of a file, a folder or a link. */
  from?: string | undefined;
  /** Instead of from: its bytes. */
  fromBytes?: Uint8Array | undefined;
  /** Its new path. An existing file is replaced by a file, an empty folder by a folder. */
  to?: string | undefined;
  /** Instead of to: its bytes. */
  toBytes?: Uint8Array | undefined;
}

/** Packed counts the files that an archive lacks. */
export interface Packed {
  /** Files that the archive lacks. */
  skipped: number;
}

/** Unpacked counts the unpacked files. */
export interface Unpacked {
  /** Files, folders and links. */
  entries: number;
  /** Of the content of files. */
  bytes: number;
}

/** FolderUnpack describes how to unpack an archive. */
export interface FolderUnpack {
  /** Make the folder and its parents if they are missing. */
  createParents?: boolean | undefined;
}

/** UnpackIn is the input of unpackFolder. */
export interface UnpackIn extends InFile, FolderUnpack {
}

/** Listener is an address in a sandbox on which a guest listens. */
export interface Listener {
  /** Listeners on other addresses than localhost's and "all" cannot be reached. */
  address: string;
  port: number;
}

/** ListenerList is a list of TCP addresses. */
export interface ListenerList {
  listeners: Listener[];
}

/** PortState is whether a guest listens on a port. */
export interface PortState {
  /** False if the time was over first. */
  listening: boolean;
}

/** InPort is the input of an operation on a port of a sandbox. */
export interface InPort extends InSandbox {
  /** A TCP port of the sandbox. */
  port: number;
}

/** PortWaitIn is the input of waitForPort. */
export interface PortWaitIn extends InPort, Timeout {
}

/** SnapshotInfo describes a snapshot. It lacks the time of creation: equal snapshots of several tenants are one in the store. */
export interface SnapshotInfo {
  name: string;
  /** Bytes of its files. */
  size: number;
}

/** SnapshotIn is the input of takeSnapshot. */
export interface SnapshotIn extends InSandbox {
  /** A name that no other snapshot of yours has. */
  name: string;
}

/** SnapshotList is a list of snapshots. */
export interface SnapshotList extends MissingNodes {
  snapshots: SnapshotInfo[];
}

/** SnapshotName is the input of deleteSnapshot. */
export interface SnapshotName {
  /** The name of the snapshot. */
  name: string;
}

/** ImageInfo describes an image that its tenant has built. */
export interface ImageInfo {
  name: string;
  /** Bytes of all its files, including files that it shares with its base. */
  size: number;
}

/** ImageStep is a change of an image. Exactly one field is present. */
export interface ImageStep {
  /** A command for /bin/sh. Its changes of files are kept, except in /tmp and /var/tmp. */
  run?: string | undefined;
  /** Variables of later commands and of runs of the image. $NAME is the value of an earlier variable. */
  env?: Readonly<Record<string, string>> | undefined;
  /** The user of later commands: root (the default) owns all files of the image, node its home folder and /workspace. */
  user?: "root" | "node" | undefined;
  /** The working directory of later commands, absolute or relative to the previous one. By default /. */
  dir?: string | undefined;
}

/** ImageIn is the input of buildImage. */
export interface ImageIn {
  /** A name that no other image of yours has. */
  name: string;
  /** The name of the image to begin with: one of yours, or of the server. By default the one called default. */
  from?: string | undefined;
  /** Changes, in their order. */
  steps: readonly ImageStep[];
  /** Of the commands, as for a sandbox. */
  permissions?: Permissions | undefined;
  /** Limits of each command. By default memoryBytes is 1 GiB, diskBytes 4 GiB, files 262,144 and pids 256. */
  limits?: Limits | undefined;
  /** Wall-clock time limit of each command. By default 600,000. */
  timeoutMs?: number | undefined;
}

/** ImageList is a list of images. */
export interface ImageList extends MissingNodes {
  images: ImageInfo[];
}

/** ImageName is the input of deleteImage. */
export interface ImageName {
  /** The name of an image of yours. */
  name: string;
}

/** SnippetTimes are time limits in milliseconds. */
export interface SnippetTimes {
  default: number;
  min: number;
  max: number;
}

/** SnippetInfo describes the snippets that a server runs. */
export interface SnippetInfo {
  /** The names of adapters, the default one first. */
  adapters: string[];
  /** The default one. */
  adapter: string;
  /** The names of permission presets. */
  permissions: string[];
  /** Callers need no token to run snippets. */
  anonymous: boolean;
  /** Of all files together. */
  maxBytes: number;
  maxFiles: number;
  timeoutMs: SnippetTimes;
}

/** SnippetOutput is the result of a snippet. Its JSON has exactly the six fields with names. */
export interface SnippetOutput {
  /** Lines such as "[log] hello". */
  logs: string[];
  /** An object: the state. */
  facts: Record<string, unknown>;
  /** An object: values computed from it. */
  derived: Record<string, unknown>;
  /** Empty if the snippet works. */
  errors: string[];
  durationMs: number;
  timedOut: boolean;
}

/** SnippetFile. */
export interface SnippetFile {
  path: string;
  source: string;
}

/** SnippetRunIn is the input of runSnippet. Exactly one of Source and Files is present. */
export interface SnippetRunIn {
  /** The text of src/main.ts, as the only file. */
  source?: string | undefined;
  /** 1 to 10 files, of 200,000 bytes of UTF-8 together. One is src/main.ts, which runs; the others are imported by it. */
  files?: readonly SnippetFile[] | undefined;
  /** Wall-clock time limit: 100 to 10,000, to which other values are rounded. By default 5,000. */
  timeoutMs?: number | undefined;
  /** What reads the state of a framework: one of the names that GET /api/sandbox lists. */
  adapter?: string | undefined;
  /** Strict: nothing but compute and read; default: everything inside the sandbox, and no network; public: default with the public internet, if the server allows that. */
  permissions?: "strict" | "default" | "public" | undefined;
  /** The absolute path of the folder with the packages that the snippet may import. Only a server of one program allows it, as the next two. */
  nodeModules?: string | undefined;
  /** The ES module of an adapter, whose name is adapter. */
  adapterCode?: string | undefined;
  /** Do not check the adapter's lint rules. */
  noLint?: boolean | undefined;
}

/** ToolIn is the input of tool. */
export interface ToolIn {
  /** The name of a tool of package sandboxtools. */
  tool: string;
  /** An object, according to the tool's schema. */
  arguments?: unknown | undefined;
}

/** Normalized is the result of Normalize. */
export interface Normalized {
  code?: string;
  error: GuestError | null;
}

/** NormalizeIn is the input of normalize. */
export interface NormalizeIn {
  /** A snippet as models write it. */
  code: string;
}

/** SnippetLog is a line that a snippet has printed. */
export interface SnippetLog {
  /** Such as [log] hello. */
  line: string;
}

/** OutgoingConnection is a TCP connection to an external host. */
export interface OutgoingConnection {
  /** The name that the guest has looked up; "" if it used an address. */
  host: string;
  /** The server's; one of the guest's resolver if the server was not reached. */
  address: string;
  port: number;
  /** The rule that allowed it, such as "network.rules[2]" or "network.default". */
  rule: string;
  /** From the server. */
  bytesIn: number;
  /** To the server. */
  bytesOut: number;
  durationMs: number;
  /** Outcome is "closed", or why the connection failed: "refused" by the server, "unreachable" (no route, or the name does not resolve), "timeout" (the server did not accept it in time), or "failed" (reset). */
  outcome: "closed" | "refused" | "unreachable" | "timeout" | "failed";
}

/** CommandCall is the only argument of a command's call. */
export interface CommandCall {
  args: string[];
  stdin: string;
}

/** CommandResult is the answer to a command's call. */
export interface CommandResult {
  stdout: string;
  stderr: string;
  exitCode: number;
}

/** FunctionDeclaration declares a host function of the client. */
export interface FunctionDeclaration {
  /** The number of the function in calls. The client chooses it. */
  id: number;
  /** Where programs find the function: the name of a global, and names inside it. */
  path: readonly string[];
  /** In programs, the function returns a promise. By default a call blocks the program until its answer. */
  async?: boolean | undefined;
  /** JSON Schema of the arguments, as an array. The server rejects calls that do not match. */
  schema?: unknown | undefined;
}

/** CommandDeclaration declares a program of the sandbox that calls the client. */
export interface CommandDeclaration {
  /** The number of the command in calls, as for functions. */
  id: number;
  /** The name of the program. */
  name: string;
  /** Read the program's standard input until its end, and send it with the call. */
  stdin?: boolean | undefined;
}

/** CallLimits bound the calls of host functions that a run can make. Zero means the default. */
export interface CallLimits {
  /** Calls of one run. By default 100,000, for snippets 50. */
  calls?: number | undefined;
  /** Concurrent calls of one run. By default 16. */
  concurrent?: number | undefined;
  /** Bytes of the JSON of a call's arguments. By default 1 MiB. */
  argumentsBytes?: number | undefined;
  /** Bytes of the JSON of a result. By default 4 MiB. */
  resultBytes?: number | undefined;
  /** Wall-clock time of a call. By default 30,000. */
  timeoutMs?: number | undefined;
}

/** Host declares the functions of a client that programs can call. */
export interface Host {
  /** Functions in the global scope, or in objects of it. */
  functions?: readonly FunctionDeclaration[] | undefined;
  /** Programs of the sandbox. With an empty list, addCommands can add some. */
  commands?: readonly CommandDeclaration[] | undefined;
  calls?: CallLimits | undefined;
}

/** The inputs and results of the operations. */
export interface Operations {
  /** Run a program in a new sandbox. */
  run: { params: RunRequest; result: Run };
  /** Run a program of the image in a new sandbox. */
  command: { params: CommandRequest; result: Run };
  /** Evaluate a snippet in a new sandbox. */
  evaluate: { params: EvaluateRequest; result: Evaluation };
  /** Run a program and return its value. */
  runIn: { params: ProgramIn; result: Run };
  /** Run a program without a value. */
  execIn: { params: ProgramIn; result: Run };
  /** Run a program of the image. */
  commandIn: { params: CommandIn; result: Run };
  /** Evaluate a snippet. */
  evaluateIn: { params: SnippetIn; result: Evaluation };
  /** Submit a run, which is made once it is its turn. */
  submitRun: { params: SubmitRequest; result: BatchRun };
  /** Describe a batch run. */
  getBatchRun: { params: InBatch; result: BatchRun };
  /** Wait until a batch run is done. */
  waitBatchRun: { params: WaitBatchIn; result: BatchRun };
  /** Follow the state of a batch run. */
  followBatchRun: { params: InBatch; result: null };
  /** Cancel a batch run. */
  cancelBatchRun: { params: InBatch; result: BatchRun };
  /** Create a sandbox. */
  createSandbox: { params: SandboxRequest; result: SandboxInfo };
  /** List your sandboxes, the oldest first. */
  listSandboxes: { params: object; result: SandboxList };
  /** Describe a sandbox, without renewing it. */
  getSandbox: { params: InSandbox; result: SandboxInfo };
  /** Restart the idle timeout of a sandbox. */
  renewSandbox: { params: InSandbox; result: SandboxInfo };
  /** Stop all that runs in a sandbox until it is resumed. */
  pauseSandbox: { params: InSandbox; result: null };
  /** Let a paused sandbox continue. */
  resumeSandbox: { params: InSandbox; result: null };
  /** Delete a sandbox, with all that runs in it. */
  deleteSandbox: { params: InSandbox; result: null };
  /** Count the resources that a sandbox uses. */
  getUsage: { params: InSandbox; result: ResourceUsage };
  /** Start a process that lives on. */
  spawn: { params: SpawnIn; result: ProcessInfo };
  /** List the processes, the oldest first. */
  listProcesses: { params: InSandbox; result: ProcessList };
  /** Describe a process. */
  getProcess: { params: InProcess; result: ProcessInfo };
  /** Wait until a process has ended. */
  waitProcess: { params: WaitIn; result: ProcessInfo };
  /** Kill a process if it is active, and forget it. */
  deleteProcess: { params: InProcess; result: null };
  /** Send a signal to a process. */
  signalProcess: { params: SignalIn; result: null };
  /** Change the size of a process's terminal. */
  resizeProcess: { params: ResizeIn; result: null };
  /** Write to a process's standard input, or close it. */
  writeProcess: { params: StdinIn; result: null };
  /** Follow a process's output and other events. */
  followProcess: { params: FollowIn; result: ProcessInfo };
  /** Create a context, which keeps the declarations of its cells. */
  createContext: { params: ContextIn; result: ContextInfo };
  /** List the contexts, the oldest first. */
  listContexts: { params: InSandbox; result: ContextList };
  /** Describe a context. */
  getContext: { params: InContext; result: ContextInfo };
  /** End a context, and forget it. */
  deleteContext: { params: InContext; result: null };
  /** Interrupt the current cell and waiting ones. */
  interruptContext: { params: InContext; result: Interrupted };
  /** List the names that can complete a line of code. */
  completeInContext: { params: CompleteIn; result: Completion };
  /** Evaluate a cell after the earlier ones. */
  evaluateCell: { params: CellIn; result: Evaluation };
  /** Read a file, or a range of it. */
  readFile: { params: ReadIn; result: FileInfo };
  /** Write a file. */
  writeFile: { params: WriteIn; result: FileInfo };
  /** Remove a file or a folder. */
  removeFile: { params: RemoveIn; result: null };
  /** Describe a file. */
  statFile: { params: StatIn; result: FileInfo };
  /** List a folder. */
  listFiles: { params: ListIn; result: FileList };
  /** Make a folder. */
  makeFolder: { params: FolderIn; result: null };
  /** Move a file or a folder. */
  moveFile: { params: MoveIn; result: null };
  /** Download the content of a folder as a tar archive. */
  packFolder: { params: InFile; result: Packed };
  /** Unpack a tar archive into a folder. */
  unpackFolder: { params: UnpackIn; result: Unpacked };
  /** List the TCP addresses on which guests listen. */
  listListeners: { params: InSandbox; result: ListenerList };
  /** Wait until a guest listens on a port. */
  waitForPort: { params: PortWaitIn; result: PortState };
  /** Copy the folders of a sandbox to a snapshot. */
  takeSnapshot: { params: SnapshotIn; result: SnapshotInfo };
  /** List your snapshots, by name. */
  listSnapshots: { params: object; result: SnapshotList };
  /** Delete a snapshot that no sandbox uses. */
  deleteSnapshot: { params: SnapshotName; result: null };
  /** Build an image from another by steps. */
  buildImage: { params: ImageIn; result: ImageInfo };
  /** List your images, by name. */
  listImages: { params: object; result: ImageList };
  /** Delete an image that no sandbox uses. */
  deleteImage: { params: ImageName; result: null };
  /** Describe the snippets that the server runs. */
  describeSnippets: { params: object; result: SnippetInfo };
  /** Run a snippet and return its output. */
  runSnippet: { params: SnippetRunIn; result: SnippetOutput };
  /** Call a tool of package sandboxtools, whose sandboxes end with the session. */
  tool: { params: ToolIn; result: unknown };
  /** Turn a snippet into an ES module. */
  normalize: { params: NormalizeIn; result: Normalized };
  /** Add programs that the client implements to a sandbox of the session. */
  addCommands: { params: InSandbox; result: null };
  /** Connect to a guest's server until both directions have ended. */
  dial: { params: InPort; result: null };
}

/** The shapes of the results. */
export const results: Readonly<Record<keyof Operations, string>> = {
  run: "Run",
  command: "Run",
  evaluate: "Evaluation",
  runIn: "Run",
  execIn: "Run",
  commandIn: "Run",
  evaluateIn: "Evaluation",
  submitRun: "BatchRun",
  getBatchRun: "BatchRun",
  waitBatchRun: "BatchRun",
  followBatchRun: "any",
  cancelBatchRun: "BatchRun",
  createSandbox: "SandboxInfo",
  listSandboxes: "SandboxList",
  getSandbox: "SandboxInfo",
  renewSandbox: "SandboxInfo",
  pauseSandbox: "any",
  resumeSandbox: "any",
  deleteSandbox: "any",
  getUsage: "ResourceUsage",
  spawn: "ProcessInfo",
  listProcesses: "ProcessList",
  getProcess: "ProcessInfo",
  waitProcess: "ProcessInfo",
  deleteProcess: "any",
  signalProcess: "any",
  resizeProcess: "any",
  writeProcess: "any",
  followProcess: "ProcessInfo",
  createContext: "ContextInfo",
  listContexts: "ContextList",
  getContext: "ContextInfo",
  deleteContext: "any",
  interruptContext: "Interrupted",
  completeInContext: "Completion",
  evaluateCell: "Evaluation",
  readFile: "FileInfo",
  writeFile: "FileInfo",
  removeFile: "any",
  statFile: "FileInfo",
  listFiles: "FileList",
  makeFolder: "any",
  moveFile: "any",
  packFolder: "Packed",
  unpackFolder: "Unpacked",
  listListeners: "ListenerList",
  waitForPort: "PortState",
  takeSnapshot: "SnapshotInfo",
  listSnapshots: "SnapshotList",
  deleteSnapshot: "any",
  buildImage: "ImageInfo",
  listImages: "ImageList",
  deleteImage: "any",
  describeSnippets: "SnippetInfo",
  runSnippet: "SnippetOutput",
  tool: "any",
  normalize: "Normalized",
  addCommands: "any",
  dial: "any",
};

/** The shapes of the fields of objects, by type. Optional fields end in a question mark. */
export const shapes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  GuestError: { "name": "string", "message": "string", "stack": "string", "frame?": "string", "code?": "string", "properties?": "object", "cause?": "GuestError", "errors?": "GuestError[]", "denied?": "string", "text?": "string", },
  NetworkUsage: { "connections": "number", "lookups": "number", "denied": "number", "bytesIn": "number", "bytesOut": "number", },
  Usage: { "cpuMs": "number", "peakMemoryBytes": "number", "pids": "number", "network?": "NetworkUsage", },
  Truncated: { "stdout": "boolean", "stderr": "boolean", "denials": "boolean", "calls?": "boolean", },
  Call: { "name": "string", "ms": "number", "argumentsBytes": "number", "resultBytes": "number", "error": "string", },
  Denial: { "scope": "string", "operation": "string", "target": "string", "address?": "string", "rule": "string", "count": "number", "source": "string", },
  Run: { "exitCode": "number", "signal": "string", "cause": "string", "value?": "any", "error?": "GuestError", "queuedMs?": "number", "durationMs": "number", "usage": "Usage", "truncated": "Truncated", "calls?": "Call[]", "denials": "Denial[]", "launcher": "string", "launcherReason?": "string", },
  LogLine: { "level": "string", "text": "string", "ms": "number", },
  EvaluationTruncated: { "logs": "boolean", "calls": "boolean", "denials": "boolean", },
  Evaluation: { "value?": "any", "noValue?": "string", "error": "GuestError|null", "logs": "LogLine[]", "calls": "Call[]", "durationMs": "number", "cause": "string", "usage": "Usage", "denials": "Denial[]", "truncated": "EvaluationTruncated", },
  BatchError: { "code": "string", "status": "number", "detail": "string", },
  BatchRun: { "key": "string", "state": "string", "submitted": "date", "attempts?": "number", "done?": "date", "result?": "Run", "error?": "BatchError", },
  SandboxInfo: { "id": "string", "created": "date", "expires": "date", "lifetimeEnd": "date", "isolation": "string", "paused?": "boolean", "processes": "number", "missing?": "string[]", },
  MissingNodes: { "missing?": "string[]", },
  SandboxList: { "sandboxes": "SandboxInfo[]", "...MissingNodes": "MissingNodes", },
  Resources: { "runningProcesses": "number", "openFds": "number", "sockets": "number", "socketListeners": "number", "socketConnections": "number", "pipes": "number", "ptys": "number", "memoryBytes": "number", "diskBytes": "number", "files": "number", "truncated": "boolean", },
  ResourceUsage: { "exitedProcesses": "number", "...Resources": "Resources", },
  ProcessUsage: { "memoryBytes": "number", "...Usage": "Usage", },
  ProcessInfo: { "id": "string", "pid": "number", "state": "string", "program": "string", "args": "string[]", "started": "date", "terminal": "boolean", "usage": "ProcessUsage", "lastEventId": "number", "ended?": "date", "result?": "Run", "failure?": "string", },
  ProcessList: { "processes": "ProcessInfo[]", },
  ContextInfo: { "id": "string", "state": "string", "created": "date", "cells": "number", "reason?": "string", "exitCode?": "number", },
  ContextList: { "contexts": "ContextInfo[]", },
  Interrupted: { "cells": "number", },
  Completion: { "prefix": "string", "names": "string[]", },
  FileInfo: { "path": "string", "pathBytes?": "bytes", "type": "string", "size": "number", "mode": "string", "modified": "date", "target?": "string", "targetBytes?": "bytes", },
  FileList: { "files": "FileInfo[]", "truncated": "boolean", },
  Packed: { "skipped": "number", },
  Unpacked: { "entries": "number", "bytes": "number", },
  Listener: { "address": "string", "port": "number", },
  ListenerList: { "listeners": "Listener[]", },
  PortState: { "listening": "boolean", },
  SnapshotInfo: { "name": "string", "size": "number", },
  SnapshotList: { "snapshots": "SnapshotInfo[]", "...MissingNodes": "MissingNodes", },
  ImageInfo: { "name": "string", "size": "number", },
  ImageList: { "images": "ImageInfo[]", "...MissingNodes": "MissingNodes", },
  SnippetTimes: { "default": "number", "min": "number", "max": "number", },
  SnippetInfo: { "adapters": "string[]", "adapter": "string", "permissions": "string[]", "anonymous": "boolean", "maxBytes": "number", "maxFiles": "number", "timeoutMs": "SnippetTimes", },
  SnippetOutput: { "logs": "string[]", "facts": "object", "derived": "object", "errors": "string[]", "durationMs": "number", "timedOut": "boolean", },
  Normalized: { "code?": "string", "error": "GuestError|null", },
  SnippetLog: { "line": "string", },
  OutgoingConnection: { "host": "string", "address": "string", "port": "number", "rule": "string", "bytesIn": "number", "bytesOut": "number", "durationMs": "number", "outcome": "string", },
  CommandCall: { "args": "string[]", "stdin": "string", },
  CommandResult: { "stdout": "string", "stderr": "string", "exitCode": "number", },
};

/** The names of the fields of inputs, by type, with those of the fields that are objects. */
export const fields = {
  Permissions: {
    fs: { default: true, rules: { mode: true, operations: true, paths: true } },
    network: { default: true, rules: { mode: true, operations: true, patterns: true } },
    childProcess: { default: true, rules: { mode: true, operations: true, patterns: true } },
    process: { default: true, rules: { mode: true, operations: true } },
    env: { default: true, rules: { mode: true, operations: true, patterns: true } },
  },
  Timeout: { timeoutMs: true, maxTimeout: true },
  Start: { permissions: true, args: true, env: true, cwd: true, stdin: true, timeoutMs: true, maxTimeout: true },
  Program: { code: true, name: true, format: true, permissions: true, args: true, env: true, cwd: true, stdin: true, timeoutMs: true, maxTimeout: true },
  Limits: { memoryBytes: true, cpus: true, cpuTimeMs: true, pids: true, openFiles: true, diskBytes: true, files: true, outputBytes: true, valueBytes: true },
  Mount: { source: true, target: true, access: true },
  NodeModules: { hostPath: true, guestPath: true },
  Tree: { image: true, snapshot: true, files: true, fileBytes: true, limits: { memoryBytes: true, cpus: true, cpuTimeMs: true, pids: true, openFiles: true, diskBytes: true, files: true, outputBytes: true, valueBytes: true }, isolation: true, readOnly: true, hostname: true, mounts: { source: true, target: true, access: true }, nodeModules: { hostPath: true, guestPath: true }, bigInts: true, hostPorts: true },
  RunRequest: { code: true, name: true, format: true, permissions: true, args: true, env: true, cwd: true, stdin: true, timeoutMs: true, maxTimeout: true, image: true, snapshot: true, files: true, fileBytes: true, limits: { memoryBytes: true, cpus: true, cpuTimeMs: true, pids: true, openFiles: true, diskBytes: true, files: true, outputBytes: true, valueBytes: true }, isolation: true, readOnly: true, hostname: true, mounts: { source: true, target: true, access: true }, nodeModules: { hostPath: true, guestPath: true }, bigInts: true, hostPorts: true },
  Command: { command: true, permissions: true, args: true, env: true, cwd: true, stdin: true, timeoutMs: true, maxTimeout: true },
  CommandRequest: { command: true, permissions: true, args: true, env: true, cwd: true, stdin: true, timeoutMs: true, maxTimeout: true, image: true, snapshot: true, files: true, fileBytes: true, limits: { memoryBytes: true, cpus: true, cpuTimeMs: true, pids: true, openFiles: true, diskBytes: true, files: true, outputBytes: true, valueBytes: true }, isolation: true, readOnly: true, hostname: true, mounts: { source: true, target: true, access: true }, nodeModules: { hostPath: true, guestPath: true }, bigInts: true, hostPorts: true },
  Cell: { code: true, globals: true, maxOutput: true, maxLogs: true, maxLogLength: true, form: true, timeoutMs: true, maxTimeout: true },
  Snippet: { code: true, globals: true, maxOutput: true, maxLogs: true, maxLogLength: true, form: true, timeoutMs: true, maxTimeout: true, permissions: true, env: true, cwd: true },
  EvaluateRequest: { code: true, globals: true, maxOutput: true, maxLogs: true, maxLogLength: true, form: true, timeoutMs: true, maxTimeout: true, permissions: true, env: true, cwd: true, image: true, snapshot: true, files: true, fileBytes: true, limits: { memoryBytes: true, cpus: true, cpuTimeMs: true, pids: true, openFiles: true, diskBytes: true, files: true, outputBytes: true, valueBytes: true }, isolation: true, readOnly: true, hostname: true, mounts: { source: true, target: true, access: true }, nodeModules: { hostPath: true, guestPath: true }, bigInts: true, hostPorts: true },
  InSandbox: { sandbox: true },
  ProgramIn: { sandbox: true, code: true, name: true, format: true, permissions: true, args: true, env: true, cwd: true, stdin: true, timeoutMs: true, maxTimeout: true },
  CommandIn: { sandbox: true, command: true, permissions: true, args: true, env: true, cwd: true, stdin: true, timeoutMs: true, maxTimeout: true },
  SnippetIn: { sandbox: true, code: true, globals: true, maxOutput: true, maxLogs: true, maxLogLength: true, form: true, timeoutMs: true, maxTimeout: true, permissions: true, env: true, cwd: true },
  SubmitRequest: { idempotencyKey: true, code: true, name: true, format: true, command: true, permissions: true, args: true, env: true, cwd: true, stdin: true, timeoutMs: true, maxTimeout: true, image: true, snapshot: true, files: true, fileBytes: true, limits: { memoryBytes: true, cpus: true, cpuTimeMs: true, pids: true, openFiles: true, diskBytes: true, files: true, outputBytes: true, valueBytes: true }, isolation: true, readOnly: true, hostname: true, mounts: { source: true, target: true, access: true }, nodeModules: { hostPath: true, guestPath: true }, bigInts: true, hostPorts: true },
  InBatch: { key: true },
  WaitBatchIn: { key: true, timeoutMs: true },
  SandboxRequest: { permissions: true, globals: true, env: true, cwd: true, idleTimeoutMs: true, lifetimeMs: true, image: true, snapshot: true, files: true, fileBytes: true, limits: { memoryBytes: true, cpus: true, cpuTimeMs: true, pids: true, openFiles: true, diskBytes: true, files: true, outputBytes: true, valueBytes: true }, isolation: true, readOnly: true, hostname: true, mounts: { source: true, target: true, access: true }, nodeModules: { hostPath: true, guestPath: true }, bigInts: true, hostPorts: true },
  Terminal: { rows: true, cols: true, term: true },
  ProcessRequest: { code: true, name: true, format: true, command: true, permissions: true, args: true, env: true, cwd: true, timeoutMs: true, terminal: { rows: true, cols: true, term: true }, whenFull: true },
  SpawnIn: { sandbox: true, code: true, name: true, format: true, command: true, permissions: true, args: true, env: true, cwd: true, timeoutMs: true, terminal: { rows: true, cols: true, term: true }, whenFull: true },
  InProcess: { sandbox: true, process: true },
  WaitIn: { sandbox: true, process: true, timeoutMs: true },
  SignalIn: { sandbox: true, process: true, signal: true, group: true },
  ResizeIn: { sandbox: true, process: true, rows: true, cols: true },
  Input: { text: true, bytes: true, close: true },
  StdinIn: { sandbox: true, process: true, text: true, bytes: true, close: true },
  FollowIn: { sandbox: true, process: true, lastEventId: true },
  ContextRequest: { globals: true, maxIdleTimeout: true, permissions: true, env: true, cwd: true, idleTimeoutMs: true, lastValue: true },
  ContextIn: { sandbox: true, globals: true, maxIdleTimeout: true, permissions: true, env: true, cwd: true, idleTimeoutMs: true, lastValue: true },
  InContext: { sandbox: true, context: true },
  CompleteIn: { sandbox: true, context: true, line: true },
  CellIn: { sandbox: true, context: true, code: true, globals: true, maxOutput: true, maxLogs: true, maxLogLength: true, form: true, timeoutMs: true, maxTimeout: true },
  InFile: { sandbox: true, path: true, pathBytes: true },
  ReadIn: { sandbox: true, path: true, pathBytes: true, offset: true, limit: true },
  FileMode: { mode: true },
  WriteIn: { sandbox: true, path: true, pathBytes: true, mode: true, createParents: true },
  FileRemove: { recursive: true },
  RemoveIn: { sandbox: true, path: true, pathBytes: true, recursive: true },
  FileStat: { links: true },
  StatIn: { sandbox: true, path: true, pathBytes: true, links: true },
  FolderList: { recursive: true, limit: true, exclude: true },
  ListIn: { sandbox: true, path: true, pathBytes: true, recursive: true, limit: true, exclude: true },
  FolderMake: { mode: true, createParents: true },
  FolderIn: { sandbox: true, path: true, pathBytes: true, mode: true, createParents: true },
  MoveIn: { sandbox: true, from: true, fromBytes: true, to: true, toBytes: true },
  FolderUnpack: { createParents: true },
  UnpackIn: { sandbox: true, path: true, pathBytes: true, createParents: true },
  InPort: { sandbox: true, port: true },
  PortWaitIn: { sandbox: true, port: true, timeoutMs: true, maxTimeout: true },
  SnapshotIn: { sandbox: true, name: true },
  SnapshotName: { name: true },
  ImageStep: { run: true, env: true, user: true, dir: true },
  ImageIn: { name: true, from: true, steps: { run: true, env: true, user: true, dir: true }, permissions: true, limits: { memoryBytes: true, cpus: true, cpuTimeMs: true, pids: true, openFiles: true, diskBytes: true, files: true, outputBytes: true, valueBytes: true }, timeoutMs: true },
  ImageName: { name: true },
  SnippetFile: { path: true, source: true },
  SnippetRunIn: { source: true, files: { path: true, source: true }, timeoutMs: true, adapter: true, permissions: true, nodeModules: true, adapterCode: true, noLint: true },
  ToolIn: { tool: true, arguments: true },
  NormalizeIn: { code: true },
  FunctionDeclaration: { id: true, path: true, async: true, schema: true },
  CommandDeclaration: { id: true, name: true, stdin: true },
  CallLimits: { calls: true, concurrent: true, argumentsBytes: true, resultBytes: true, timeoutMs: true },
  Host: { functions: { id: true, path: true, async: true, schema: true }, commands: { id: true, name: true, stdin: true }, calls: { calls: true, concurrent: true, argumentsBytes: true, resultBytes: true, timeoutMs: true } },
} as const;
