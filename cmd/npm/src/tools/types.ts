/** The encoding of a file's content in JSON. */
export type Encoding = "utf8" | "base64";

/** An entry of a folder. */
export interface DirectoryEntry {
  name: string;
  type: string;
  size: number;
  path: string;
}

/** The arguments of each tool. The definitions describe them. */
export interface ToolArguments {
  sandbox_init: {
    containerId?: string | undefined;
    imageName?: string | undefined;
    containerName?: string | undefined;
    projectOutPath?: string | undefined;
    rootPath?: string | undefined;
  };
  sandbox_destroy: { containerId: string; removeContainer?: boolean | undefined };
  sandbox_command: {
    containerId: string;
    executable: string;
    args?: string[] | undefined;
    workingDirectory?: string | undefined;
    envVars?: string[] | undefined;
    timeout?: number | undefined;
  };
  sandbox_write_file: {
    containerId: string;
    path: string;
    content: string;
    encoding?: Encoding | undefined;
    createParentDirs?: boolean | undefined;
  };
  sandbox_read_file: { containerId: string; path: string; encoding?: Encoding | undefined };
  sandbox_list_directory: { containerId: string; path: string; recursive?: boolean | undefined };
  sandbox_create_directory: { containerId: string; path: string; recursive?: boolean | undefined };
  sandbox_delete: { containerId: string; path: string; recursive?: boolean | undefined; force?: boolean | undefined };
  sandbox_exists: { containerId: string; path: string };
  sandbox_file_info: { containerId: string; path: string };
}

/** The result of each tool. The definitions describe them. */
export interface ToolResults {
  sandbox_init: {
    containerId: string;
    containerName: string;
    hostName: string;
    imageName: string;
    rootPath: string;
    projectOutPath: string;
  };
  sandbox_destroy: { containerId: string; removed: boolean };
  sandbox_command: {
    stdout: string;
    stderr: string;
    exitCode: number;
    timedOut: boolean;
    cause: string;
    stdoutTruncated: boolean;
    stderrTruncated: boolean;
  };
  sandbox_write_file: { path: string; size: number };
  sandbox_read_file: { path: string; content: string; encoding: string; size: number };
  sandbox_list_directory: { path: string; entries: DirectoryEntry[]; truncated: boolean };
  sandbox_create_directory: { path: string };
  sandbox_delete: { path: string; deleted: boolean };
  sandbox_exists: { path: string; exists: boolean };
  sandbox_file_info: {
    path: string;
    name: string;
    type: string;
    size: number;
    permissions: string;
    owner: number;
    group: number;
    modifiedAt: string;
    accessedAt: string;
    createdAt?: string | undefined;
  };
}

/** The name of a tool. */
export type ToolName = keyof ToolArguments;
