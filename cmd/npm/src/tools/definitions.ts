// Code generated from package sandboxtools by make generate. DO NOT EDIT.
import type { JSONSchema } from "../schema.js";

/** A tool as the protocols describe it that offer tools to models. */
export interface Definition {
  name: string;
  description: string;
  inputSchema: JSONSchema;
  outputSchema: JSONSchema;
}

/** The arguments of each tool. */
export interface ToolArguments {
  sandbox_init: {
    /** The id of the new sandbox, which must be unique. If omitted or empty, an id is generated. */
    containerId?: string | undefined;
    /** A display name. It becomes the guest's host name if it is a valid one: letters, digits, dots and hyphens. */
    containerName?: string | undefined;
    /** An image of the store: a name, an id, or a unique prefix of an id. Or a registry reference or a path, exactly as the host lists it. If omitted or empty, the default image is used. */
    imageName?: string | undefined;
    /** A folder on the host that the guest reads and writes at /<rootPath>. It is created if missing. If omitted or empty, the files are deleted with the sandbox. */
    projectOutPath?: string | undefined;
    /** The guest's working directory, below /. Relative paths start there. */
    rootPath?: string | undefined;
  };
  sandbox_destroy: {
    /** The id of the sandbox. */
    containerId: string;
    /** If false, running commands are killed and no more can start, but the files remain usable until the sandbox is destroyed with true or expires. */
    removeContainer?: boolean | undefined;
  };
  sandbox_command: {
    /** The arguments, passed unchanged. */
    args?: string[] | undefined;
    /** The id of the sandbox. */
    containerId: string;
    /** Environment variables as K=V. They override the sandbox's; the last of several with the same name wins. */
    envVars?: string[] | undefined;
    /** A program in the guest: a path, or a name that is looked up in PATH. No shell is used. */
    executable: string;
    /** Milliseconds after which the command is killed. */
    timeout?: number | undefined;
    /** The folder to start in, absolute or relative to /<rootPath>, which is the default. */
    workingDirectory?: string | undefined;
  };
  sandbox_write_file: {
    /** The id of the sandbox. */
    containerId: string;
    /** The new content of the file, at most 16 MiB. */
    content: string;
    /** Create missing parent folders. */
    createParentDirs?: boolean | undefined;
    /** The encoding of content: text, or bytes as base64 with padding. */
    encoding?: "utf8" | "base64" | undefined;
    /** A path in the guest, absolute or relative to /<rootPath>. */
    path: string;
  };
  sandbox_read_file: {
    /** The id of the sandbox. */
    containerId: string;
    /** The encoding of the result. A file that is not valid UTF-8 is always returned as base64: the result names the encoding. The file may have at most 16 MiB. */
    encoding?: "utf8" | "base64" | undefined;
    /** A path in the guest, absolute or relative to /<rootPath>. */
    path: string;
  };
  sandbox_list_directory: {
    /** The id of the sandbox. */
    containerId: string;
    /** A path in the guest, absolute or relative to /<rootPath>. */
    path: string;
    /** List subfolders too. Links are not followed. */
    recursive?: boolean | undefined;
  };
  sandbox_create_directory: {
    /** The id of the sandbox. */
    containerId: string;
    /** A path in the guest, absolute or relative to /<rootPath>. */
    path: string;
    /** Create missing parent folders, and succeed if the folder exists. */
    recursive?: boolean | undefined;
  };
  sandbox_delete: {
    /** The id of the sandbox. */
    containerId: string;
    /** Succeed if the path does not exist. */
    force?: boolean | undefined;
    /** A path in the guest, absolute or relative to /<rootPath>. */
    path: string;
    /** Remove a folder with its content. Otherwise a folder must be empty. */
    recursive?: boolean | undefined;
  };
  sandbox_exists: {
    /** The id of the sandbox. */
    containerId: string;
    /** A path in the guest, absolute or relative to /<rootPath>. */
    path: string;
  };
  sandbox_file_info: {
    /** The id of the sandbox. */
    containerId: string;
    /** A path in the guest, absolute or relative to /<rootPath>. */
    path: string;
  };
}

/** The result of each tool. */
export interface ToolResults {
  sandbox_init: {
    /** The id of the sandbox, for the other tools. */
    containerId: string;
    /** The containerName of the call. */
    containerName: string;
    /** The guest's host name. */
    hostName: string;
    /** The imageName of the call. Empty: the default image. */
    imageName: string;
    /** The absolute path of the host's folder that is shared there. Empty: none. */
    projectOutPath: string;
    /** The guest's working directory, an absolute path. */
    rootPath: string;
  };
  sandbox_destroy: {
    /** The id of the sandbox. */
    containerId: string;
    /** Whether the sandbox and its files were removed. */
    removed: boolean;
  };
  sandbox_command: {
    /** Why the command was killed, if it was: timeout, cpu, memory, pids or signal. */
    cause: string;
    /** The exit status; 128+n if signal n killed the command. */
    exitCode: number;
    /** Standard error, likewise. */
    stderr: string;
    /** Whether stderr is incomplete. */
    stderrTruncated: boolean;
    /** Standard output. Invalid UTF-8 becomes U+FFFD. */
    stdout: string;
    /** Whether stdout is incomplete. */
    stdoutTruncated: boolean;
    /** Whether the command timed out. */
    timedOut: boolean;
  };
  sandbox_write_file: {
    /** The absolute path. */
    path: string;
    /** Bytes written. */
    size: number;
  };
  sandbox_read_file: {
    /** The content of the file. */
    content: string;
    /** The encoding of content: utf8 or base64. */
    encoding: string;
    /** The absolute path. */
    path: string;
    /** Bytes in the file. */
    size: number;
  };
  sandbox_list_directory: {
    /** Sorted by name, each folder before its content. */
    entries: {
      /** Invalid UTF-8 becomes U+FFFD; such a name can't be used in a path. */
      name: string;
      /** The absolute path. */
      path: string;
      /** Bytes. */
      size: number;
      /** File, directory, symlink or other. */
      type: string;
    }[];
    /** The absolute path of the folder. */
    path: string;
    /** Whether entries are missing: more than 10,000, more than 4 MiB of paths, or folders that could not be read. */
    truncated: boolean;
  };
  sandbox_create_directory: {
    /** The absolute path. */
    path: string;
  };
  sandbox_delete: {
    /** Whether the path existed. */
    deleted: boolean;
    /** The absolute path. */
    path: string;
  };
  sandbox_exists: {
    /** Whether the path exists. A dangling link does not. */
    exists: boolean;
    /** The absolute path. */
    path: string;
  };
  sandbox_file_info: {
    /** When the file was last read, if the file system records it. */
    accessedAt: string;
    /** When the file was created. Omitted if the file system does not record it. */
    createdAt?: string | undefined;
    /** The group id that the guest sees. */
    group: number;
    /** When the content was last changed. Later years than 9999 are reported as the end of 9999. */
    modifiedAt: string;
    /** The last component of the path. */
    name: string;
    /** The user id that the guest sees. */
    owner: number;
    /** The absolute path. */
    path: string;
    /** Four octal digits, such as 0644. */
    permissions: string;
    /** Bytes. */
    size: number;
    /** File, directory, symlink or other. */
    type: string;
  };
}

/** The name of a tool. */
export type ToolName = keyof ToolArguments;

export const definitions: readonly Definition[] = [
  {
    "name": "sandbox_init",
    "description": "Creates a sandbox for untrusted Node.js programs and their files.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the new sandbox, which must be unique. If omitted or empty, an id is generated.",
          "maxLength": 64,
          "pattern": "^([A-Za-z0-9][A-Za-z0-9_.-]*)?$",
          "type": "string"
        },
        "containerName": {
          "description": "A display name. It becomes the guest's host name if it is a valid one: letters, digits, dots and hyphens.",
          "maxLength": 64,
          "pattern": "^([A-Za-z0-9][A-Za-z0-9_.-]*)?$",
          "type": "string"
        },
        "imageName": {
          "description": "An image of the store: a name, an id, or a unique prefix of an id. Or a registry reference or a path, exactly as the host lists it. If omitted or empty, the default image is used.",
          "maxLength": 4095,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        },
        "projectOutPath": {
          "description": "A folder on the host that the guest reads and writes at /\u003crootPath\u003e. It is created if missing. If omitted or empty, the files are deleted with the sandbox.",
          "maxLength": 4095,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        },
        "rootPath": {
          "default": "workspace",
          "description": "The guest's working directory, below /. Relative paths start there.",
          "maxLength": 255,
          "pattern": "^([A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*)?$",
          "type": "string"
        }
      },
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox, for the other tools.",
          "type": "string"
        },
        "containerName": {
          "description": "The containerName of the call.",
          "type": "string"
        },
        "hostName": {
          "description": "The guest's host name.",
          "type": "string"
        },
        "imageName": {
          "description": "The imageName of the call. Empty: the default image.",
          "type": "string"
        },
        "projectOutPath": {
          "description": "The absolute path of the host's folder that is shared there. Empty: none.",
          "type": "string"
        },
        "rootPath": {
          "description": "The guest's working directory, an absolute path.",
          "type": "string"
        }
      },
      "required": [
        "containerId",
        "containerName",
        "hostName",
        "imageName",
        "rootPath",
        "projectOutPath"
      ],
      "type": "object"
    }
  },
  {
    "name": "sandbox_destroy",
    "description": "Destroys a sandbox: kills its commands and deletes its files.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox.",
          "maxLength": 64,
          "minLength": 1,
          "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
          "type": "string"
        },
        "removeContainer": {
          "default": true,
          "description": "If false, running commands are killed and no more can start, but the files remain usable until the sandbox is destroyed with true or expires.",
          "type": "boolean"
        }
      },
      "required": [
        "containerId"
      ],
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox.",
          "type": "string"
        },
        "removed": {
          "description": "Whether the sandbox and its files were removed.",
          "type": "boolean"
        }
      },
      "required": [
        "containerId",
        "removed"
      ],
      "type": "object"
    }
  },
  {
    "name": "sandbox_command",
    "description": "Runs a program in a sandbox, without a shell, and returns its output and exit code.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "args": {
          "description": "The arguments, passed unchanged.",
          "items": {
            "maxLength": 131071,
            "pattern": "^[^\\x00]*$",
            "type": "string"
          },
          "maxItems": 8192,
          "type": "array"
        },
        "containerId": {
          "description": "The id of the sandbox.",
          "maxLength": 64,
          "minLength": 1,
          "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
          "type": "string"
        },
        "envVars": {
          "description": "Environment variables as K=V. They override the sandbox's; the last of several with the same name wins.",
          "items": {
            "maxLength": 131070,
            "minLength": 2,
            "pattern": "^[^=\\x00]+=[^\\x00]*$",
            "type": "string"
          },
          "maxItems": 1024,
          "type": "array"
        },
        "executable": {
          "description": "A program in the guest: a path, or a name that is looked up in PATH. No shell is used.",
          "maxLength": 4095,
          "minLength": 1,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        },
        "timeout": {
          "default": 30000,
          "description": "Milliseconds after which the command is killed.",
          "maximum": 3600000,
          "minimum": 1,
          "type": "integer"
        },
        "workingDirectory": {
          "default": ".",
          "description": "The folder to start in, absolute or relative to /\u003crootPath\u003e, which is the default.",
          "maxLength": 4095,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        }
      },
      "required": [
        "executable",
        "containerId"
      ],
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "cause": {
          "description": "Why the command was killed, if it was: timeout, cpu, memory, pids or signal.",
          "type": "string"
        },
        "exitCode": {
          "description": "The exit status; 128+n if signal n killed the command.",
          "type": "integer"
        },
        "stderr": {
          "description": "Standard error, likewise.",
          "type": "string"
        },
        "stderrTruncated": {
          "description": "Whether stderr is incomplete.",
          "type": "boolean"
        },
        "stdout": {
          "description": "Standard output. Invalid UTF-8 becomes U+FFFD.",
          "type": "string"
        },
        "stdoutTruncated": {
          "description": "Whether stdout is incomplete.",
          "type": "boolean"
        },
        "timedOut": {
          "description": "Whether the command timed out.",
          "type": "boolean"
        }
      },
      "required": [
        "stdout",
        "stderr",
        "exitCode",
        "timedOut",
        "cause",
        "stdoutTruncated",
        "stderrTruncated"
      ],
      "type": "object"
    }
  },
  {
    "name": "sandbox_write_file",
    "description": "Writes a file in a sandbox. An existing file is replaced.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox.",
          "maxLength": 64,
          "minLength": 1,
          "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
          "type": "string"
        },
        "content": {
          "description": "The new content of the file, at most 16 MiB.",
          "maxLength": 22369624,
          "type": "string"
        },
        "createParentDirs": {
          "default": false,
          "description": "Create missing parent folders.",
          "type": "boolean"
        },
        "encoding": {
          "default": "utf8",
          "description": "The encoding of content: text, or bytes as base64 with padding.",
          "enum": [
            "utf8",
            "base64"
          ],
          "type": "string"
        },
        "path": {
          "description": "A path in the guest, absolute or relative to /\u003crootPath\u003e.",
          "maxLength": 4095,
          "minLength": 1,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        }
      },
      "required": [
        "content",
        "path",
        "containerId"
      ],
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "path": {
          "description": "The absolute path.",
          "type": "string"
        },
        "size": {
          "description": "Bytes written.",
          "type": "integer"
        }
      },
      "required": [
        "path",
        "size"
      ],
      "type": "object"
    }
  },
  {
    "name": "sandbox_read_file",
    "description": "Reads a file in a sandbox.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox.",
          "maxLength": 64,
          "minLength": 1,
          "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
          "type": "string"
        },
        "encoding": {
          "default": "utf8",
          "description": "The encoding of the result. A file that is not valid UTF-8 is always returned as base64: the result names the encoding. The file may have at most 16 MiB.",
          "enum": [
            "utf8",
            "base64"
          ],
          "type": "string"
        },
        "path": {
          "description": "A path in the guest, absolute or relative to /\u003crootPath\u003e.",
          "maxLength": 4095,
          "minLength": 1,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        }
      },
      "required": [
        "path",
        "containerId"
      ],
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "content": {
          "description": "The content of the file.",
          "type": "string"
        },
        "encoding": {
          "description": "The encoding of content: utf8 or base64.",
          "type": "string"
        },
        "path": {
          "description": "The absolute path.",
          "type": "string"
        },
        "size": {
          "description": "Bytes in the file.",
          "type": "integer"
        }
      },
      "required": [
        "path",
        "content",
        "encoding",
        "size"
      ],
      "type": "object"
    }
  },
  {
    "name": "sandbox_list_directory",
    "description": "Lists a folder in a sandbox.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox.",
          "maxLength": 64,
          "minLength": 1,
          "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
          "type": "string"
        },
        "path": {
          "description": "A path in the guest, absolute or relative to /\u003crootPath\u003e.",
          "maxLength": 4095,
          "minLength": 1,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        },
        "recursive": {
          "default": false,
          "description": "List subfolders too. Links are not followed.",
          "type": "boolean"
        }
      },
      "required": [
        "path",
        "containerId"
      ],
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "entries": {
          "description": "Sorted by name, each folder before its content.",
          "items": {
            "additionalProperties": false,
            "properties": {
              "name": {
                "description": "Invalid UTF-8 becomes U+FFFD; such a name can't be used in a path.",
                "type": "string"
              },
              "path": {
                "description": "The absolute path.",
                "type": "string"
              },
              "size": {
                "description": "Bytes.",
                "type": "integer"
              },
              "type": {
                "description": "file, directory, symlink or other.",
                "type": "string"
              }
            },
            "required": [
              "name",
              "type",
              "size",
              "path"
            ],
            "type": "object"
          },
          "type": "array"
        },
        "path": {
          "description": "The absolute path of the folder.",
          "type": "string"
        },
        "truncated": {
          "description": "Whether entries are missing: more than 10,000, more than 4 MiB of paths, or folders that could not be read.",
          "type": "boolean"
        }
      },
      "required": [
        "path",
        "entries",
        "truncated"
      ],
      "type": "object"
    }
  },
  {
    "name": "sandbox_create_directory",
    "description": "Creates a folder in a sandbox.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox.",
          "maxLength": 64,
          "minLength": 1,
          "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
          "type": "string"
        },
        "path": {
          "description": "A path in the guest, absolute or relative to /\u003crootPath\u003e.",
          "maxLength": 4095,
          "minLength": 1,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        },
        "recursive": {
          "default": false,
          "description": "Create missing parent folders, and succeed if the folder exists.",
          "type": "boolean"
        }
      },
      "required": [
        "path",
        "containerId"
      ],
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "path": {
          "description": "The absolute path.",
          "type": "string"
        }
      },
      "required": [
        "path"
      ],
      "type": "object"
    }
  },
  {
    "name": "sandbox_delete",
    "description": "Deletes a file, a link or a folder in a sandbox. The target of a link remains.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox.",
          "maxLength": 64,
          "minLength": 1,
          "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
          "type": "string"
        },
        "force": {
          "default": false,
          "description": "Succeed if the path does not exist.",
          "type": "boolean"
        },
        "path": {
          "description": "A path in the guest, absolute or relative to /\u003crootPath\u003e.",
          "maxLength": 4095,
          "minLength": 1,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        },
        "recursive": {
          "default": false,
          "description": "Remove a folder with its content. Otherwise a folder must be empty.",
          "type": "boolean"
        }
      },
      "required": [
        "path",
        "containerId"
      ],
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "deleted": {
          "description": "Whether the path existed.",
          "type": "boolean"
        },
        "path": {
          "description": "The absolute path.",
          "type": "string"
        }
      },
      "required": [
        "path",
        "deleted"
      ],
      "type": "object"
    }
  },
  {
    "name": "sandbox_exists",
    "description": "Reports whether a path exists in a sandbox.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox.",
          "maxLength": 64,
          "minLength": 1,
          "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
          "type": "string"
        },
        "path": {
          "description": "A path in the guest, absolute or relative to /\u003crootPath\u003e.",
          "maxLength": 4095,
          "minLength": 1,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        }
      },
      "required": [
        "path",
        "containerId"
      ],
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "exists": {
          "description": "Whether the path exists. A dangling link does not.",
          "type": "boolean"
        },
        "path": {
          "description": "The absolute path.",
          "type": "string"
        }
      },
      "required": [
        "path",
        "exists"
      ],
      "type": "object"
    }
  },
  {
    "name": "sandbox_file_info",
    "description": "Reports the type, size, permissions, owner and times of a path in a sandbox. A link is not followed.",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "containerId": {
          "description": "The id of the sandbox.",
          "maxLength": 64,
          "minLength": 1,
          "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
          "type": "string"
        },
        "path": {
          "description": "A path in the guest, absolute or relative to /\u003crootPath\u003e.",
          "maxLength": 4095,
          "minLength": 1,
          "pattern": "^[^\\x00]*$",
          "type": "string"
        }
      },
      "required": [
        "path",
        "containerId"
      ],
      "type": "object"
    },
    "outputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "accessedAt": {
          "description": "When the file was last read, if the file system records it.",
          "format": "date-time",
          "type": "string"
        },
        "createdAt": {
          "description": "When the file was created. Omitted if the file system does not record it.",
          "format": "date-time",
          "type": "string"
        },
        "group": {
          "description": "The group id that the guest sees.",
          "type": "integer"
        },
        "modifiedAt": {
          "description": "When the content was last changed. Later years than 9999 are reported as the end of 9999.",
          "format": "date-time",
          "type": "string"
        },
        "name": {
          "description": "The last component of the path.",
          "type": "string"
        },
        "owner": {
          "description": "The user id that the guest sees.",
          "type": "integer"
        },
        "path": {
          "description": "The absolute path.",
          "type": "string"
        },
        "permissions": {
          "description": "Four octal digits, such as 0644.",
          "type": "string"
        },
        "size": {
          "description": "Bytes.",
          "type": "integer"
        },
        "type": {
          "description": "file, directory, symlink or other.",
          "type": "string"
        }
      },
      "required": [
        "path",
        "name",
        "type",
        "size",
        "permissions",
        "owner",
        "group",
        "modifiedAt",
        "accessedAt"
      ],
      "type": "object"
    }
  }
];
