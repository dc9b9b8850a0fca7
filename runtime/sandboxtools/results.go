package sandboxtools

// InitResult is the result of sandbox_init.
type InitResult struct {
	ContainerID    string `json:"containerId" doc:"The id of the sandbox, for the other tools."`
	ContainerName  string `json:"containerName" doc:"The containerName of the call."`
	HostName       string `json:"hostName" doc:"The guest's host name."`
	ImageName      string `json:"imageName" doc:"The imageName of the call. Empty: the default image."`
	RootPath       string `json:"rootPath" doc:"The guest's working directory, an absolute path."`
	ProjectOutPath string `json:"projectOutPath" doc:"The absolute path of the host's folder that is shared there. Empty: none."`
}

// DestroyResult is the result of sandbox_destroy.
type DestroyResult struct {
	ContainerID string `json:"containerId" doc:"The id of the sandbox."`
	Removed     bool   `json:"removed" doc:"Whether the sandbox and its files were removed."`
}

// CommandResult is the result of sandbox_command. A command that fails, is killed or times
// out also has a result.
type CommandResult struct {
	Stdout          string `json:"stdout" doc:"Standard output. Invalid UTF-8 becomes U+FFFD."`
	Stderr          string `json:"stderr" doc:"Standard error, likewise."`
	ExitCode        int64  `json:"exitCode" doc:"The exit status; 128+n if signal n killed the command."`
	TimedOut        bool   `json:"timedOut" doc:"Whether the command timed out."`
	Cause           string `json:"cause" doc:"Why the command was killed, if it was: timeout, cpu, memory, pids or signal."`
	StdoutTruncated bool   `json:"stdoutTruncated" doc:"Whether stdout is incomplete."`
	StderrTruncated bool   `json:"stderrTruncated" doc:"Whether stderr is incomplete."`
}

// WriteFileResult is the result of sandbox_write_file.
type WriteFileResult struct {
	Path string `json:"path" doc:"The absolute path."`
	Size int64  `json:"size" doc:"Bytes written."`
}

// ReadFileResult is the result of sandbox_read_file.
type ReadFileResult struct {
	Path     string `json:"path" doc:"The absolute path."`
	Content  string `json:"content" doc:"The content of the file."`
	Encoding string `json:"encoding" doc:"The encoding of content: utf8 or base64."`
	Size     int64  `json:"size" doc:"Bytes in the file."`
}

// ListDirectoryResult is the result of sandbox_list_directory.
type ListDirectoryResult struct {
	Path      string  `json:"path" doc:"The absolute path of the folder."`
	Entries   []Entry `json:"entries" doc:"Sorted by name, each folder before its content."`
	Truncated bool    `json:"truncated" doc:"Whether entries are missing: more than 10,000, more than 4 MiB of paths, or folders that could not be read."`
}

// Entry is a directory entry.
type Entry struct {
	Name string `json:"name" doc:"Invalid UTF-8 becomes U+FFFD; such a name can't be used in a path."`
	Type string `json:"type" doc:"file, directory, symlink or other."`
	Size int64  `json:"size" doc:"Bytes."`
	Path string `json:"path" doc:"The absolute path."`
}

// CreateDirectoryResult is the result of sandbox_create_directory.
type CreateDirectoryResult struct {
	Path string `json:"path" doc:"The absolute path."`
}

// DeleteResult is the result of sandbox_delete.
type DeleteResult struct {
	Path    string `json:"path" doc:"The absolute path."`
	Deleted bool   `json:"deleted" doc:"Whether the path existed."`
}

// ExistsResult is the result of sandbox_exists.
type ExistsResult struct {
	Path   string `json:"path" doc:"The absolute path."`
	Exists bool   `json:"exists" doc:"Whether the path exists. A dangling link does not."`
}

// FileInfoResult is the result of sandbox_file_info. The guest can forge all of it.
type FileInfoResult struct {
	Path        string `json:"path" doc:"The absolute path."`
	Name        string `json:"name" doc:"The last component of the path."`
	Type        string `json:"type" doc:"file, directory, symlink or other."`
	Size        int64  `json:"size" doc:"Bytes."`
	Permissions string `json:"permissions" doc:"Four octal digits, such as 0644."`
	Owner       int64  `json:"owner" doc:"The user id that the guest sees."`
	Group       int64  `json:"group" doc:"The group id that the guest sees."`
	ModifiedAt  string `json:"modifiedAt" format:"date-time" doc:"When the content was last changed. Later years than 9999 are reported as the end of 9999."`
	AccessedAt  string `json:"accessedAt" format:"date-time" doc:"When the file was last read, if the file system records it."`
	CreatedAt   string `json:"createdAt,omitempty" format:"date-time" doc:"When the file was created. Omitted if the file system does not record it."`
}
