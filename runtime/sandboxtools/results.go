package sandboxtools

// InitResult is that of sandbox_init.
type InitResult struct {
	ContainerID    string `json:"containerId" about:"The sandbox's id, for the other tools."`
	ContainerName  string `json:"containerName" about:"As it was given."`
	HostName       string `json:"hostName" about:"The guest's host name."`
	ImageName      string `json:"imageName" about:"As it was given; empty: the default image."`
	RootPath       string `json:"rootPath" about:"The guest's working directory, an absolute path."`
	ProjectOutPath string `json:"projectOutPath" about:"The host's folder that is shared there, an absolute path; empty: none."`
}

// DestroyResult is that of sandbox_destroy.
type DestroyResult struct {
	ContainerID string `json:"containerId" about:"The sandbox's id."`
	Removed     bool   `json:"removed" about:"Whether nothing is left of it."`
}

// CommandResult is that of sandbox_command. A command that fails, is killed or runs out
// of time has one like any other.
type CommandResult struct {
	Stdout          string `json:"stdout" about:"What it printed. What is not UTF-8 becomes U+FFFD."`
	Stderr          string `json:"stderr" about:"What it printed as errors, likewise."`
	ExitCode        int64  `json:"exitCode" about:"Its exit status; 128+n if signal n killed it."`
	TimedOut        bool   `json:"timedOut" about:"Whether its time was up."`
	Cause           string `json:"cause" about:"Why it ended, if not by itself: timeout, cpu, memory, pids or signal."`
	StdoutTruncated bool   `json:"stdoutTruncated" about:"Whether it printed more than is here."`
	StderrTruncated bool   `json:"stderrTruncated" about:"Likewise."`
}

// WriteFileResult is that of sandbox_write_file.
type WriteFileResult struct {
	Path string `json:"path" about:"The absolute path."`
	Size int64  `json:"size" about:"Bytes written."`
}

// ReadFileResult is that of sandbox_read_file.
type ReadFileResult struct {
	Path     string `json:"path" about:"The absolute path."`
	Content  string `json:"content" about:"What is in the file."`
	Encoding string `json:"encoding" about:"What content is: utf8 or base64."`
	Size     int64  `json:"size" about:"Bytes in the file."`
}

// ListDirectoryResult is that of sandbox_list_directory.
type ListDirectoryResult struct {
	Path      string  `json:"path" about:"The folder's absolute path."`
	Entries   []Entry `json:"entries" about:"Sorted by name, a folder before what is in it."`
	Truncated bool    `json:"truncated" about:"Whether there is more: than 10,000 entries or 4 MiB of their paths, or in folders that can't be read."`
}

// Entry is something in a folder.
type Entry struct {
	Name string `json:"name" about:"What is not UTF-8 in it shows as U+FFFD; it then can't be used in a path."`
	Type string `json:"type" about:"file, directory, symlink or other."`
	Size int64  `json:"size" about:"Bytes."`
	Path string `json:"path" about:"The absolute path."`
}

// CreateDirectoryResult is that of sandbox_create_directory.
type CreateDirectoryResult struct {
	Path string `json:"path" about:"The absolute path."`
}

// DeleteResult is that of sandbox_delete.
type DeleteResult struct {
	Path    string `json:"path" about:"The absolute path."`
	Deleted bool   `json:"deleted" about:"Whether there was something."`
}

// ExistsResult is that of sandbox_exists.
type ExistsResult struct {
	Path   string `json:"path" about:"The absolute path."`
	Exists bool   `json:"exists" about:"Whether the path leads to something: a link to nothing doesn't."`
}

// FileInfoResult is that of sandbox_file_info. All of it is the guest's word.
type FileInfoResult struct {
	Path        string `json:"path" about:"The absolute path."`
	Name        string `json:"name" about:"Its last component."`
	Type        string `json:"type" about:"file, directory, symlink or other."`
	Size        int64  `json:"size" about:"Bytes."`
	Permissions string `json:"permissions" about:"Four octal digits, such as 0644."`
	Owner       int64  `json:"owner" about:"The user id that the guest sees."`
	Group       int64  `json:"group" about:"The group id that the guest sees."`
	ModifiedAt  string `json:"modifiedAt" format:"date-time" about:"When its content was last changed. Years after 9999 show as its end."`
	AccessedAt  string `json:"accessedAt" format:"date-time" about:"When it was last read, as far as that is recorded."`
	CreatedAt   string `json:"createdAt,omitempty" format:"date-time" about:"When it was made; not there where the file system doesn't know."`
}
