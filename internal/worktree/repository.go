package worktree

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

const gitFolder = ".git"

// maxText and maxIndex are the maximum sizes in bytes of text files and an index. Larger files are not read.
const (
	maxText  = 4 << 20
	maxIndex = 256 << 20
)

// readFile returns the content of a regular file of at most the given size, and nil for others. It follows no link,
// and no pipe blocks it.
func readFile(name string, most int64) []byte {
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil || int64(len(data)) > most {
		return nil
	}
	return data
}

// gitDir returns the git folder of the repository with its top in dir. In worktrees and submodules, .git is a file
// that names this folder.
func gitDir(dir string) (string, bool) {
	at := filepath.Join(dir, gitFolder)
	if target, ok := strings.CutPrefix(string(readFile(at, maxText)), "gitdir: "); ok {
		at = strings.TrimRight(target, "\r\n")
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
	}
	_, err := os.Lstat(filepath.Join(at, "HEAD"))
	return at, err == nil
}

// repository holds a repository's tracked files. Nil has none.
type repository struct {
	files map[string]bool // the names of tracked files and submodules
	dirs  map[string]bool // the directories above them
}

func (r *repository) has(name string) bool { return r != nil && r.files[name] }

// hasBelow reports whether a directory has tracked files below it, or is a submodule.
func (r *repository) hasBelow(name string) bool { return r != nil && (r.dirs[name] || r.files[name]) }

// openRepository reads the index and the ignore rules of the repository with its top in dir.
func openRepository(dir string) (r *repository, exclude rules, ok bool) {
	at, ok := gitDir(dir)
	if !ok {
		return nil, nil, false
	}
	r = &repository{files: map[string]bool{}, dirs: map[string]bool{}}
	for _, name := range indexNames(readFile(filepath.Join(at, "index"), maxIndex)) {
		r.files[name] = true
		for above := path.Dir(name); above != "." && above != "/" && !r.dirs[above]; above = path.Dir(above) {
			r.dirs[above] = true
		}
	}
	if common := strings.TrimSpace(string(readFile(filepath.Join(at, "commondir"), maxText))); filepath.IsAbs(common) {
		at = common
	} else if common != "" {
		at = filepath.Join(at, common)
	}
	return r, readRules(filepath.Join(at, "info", "exclude"), ""), true
}

// indexNames returns the names in an index of version 2 to 4, with SHA-1 or SHA-256. It stops at damaged data.
func indexNames(data []byte) (names []string) {
	if len(data) < 12 || string(data[:4]) != "DIRC" {
		return nil
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil
	}
	for _, hash := range []int{20, 32} {
		if names = entryNames(data[12:], version, count, hash); len(names) > 0 {
			return names
		}
	}
	return nil
}

// entryNames reads index entries: 40 bytes of file data, the hash, flags with the name's length, the name. In version
// 4, a name is the number of bytes to remove from the previous name, and the text to append. Other versions pad it
// with NULs.
func entryNames(data []byte, version, count uint32, hash int) (names []string) {
	const fileData, modeAt, extended, lengthMask = 40, 24, 0x4000, 0xfff
	var before string
	for range count {
		at := fileData + hash
		if len(data) < at+4 {
			return names
		}
		mode, flags := binary.BigEndian.Uint32(data[modeAt:]), binary.BigEndian.Uint16(data[at:])
		if at += 2; flags&extended != 0 {
			at += 2
		}
		name := ""
		if version == 4 {
			remove, n := offset(data[at:])
			if n == 0 || remove > len(before) {
				return names
			}
			at, name = at+n, before[:len(before)-remove]
		}
		end := bytes.IndexByte(data[min(at, len(data)):], 0)
		if end < 0 {
			return names
		}
		name += string(data[at : at+end])
		if length := int(flags & lengthMask); length < lengthMask && length != len(name) {
			return names
		}
		at += end + 1
		if version != 4 {
			at = (at + 7) &^ 7
		}
		if data = data[min(at, len(data)):]; mode>>12 != 0o4 { // a directory that a sparse index omits
			names = append(names, name)
		}
		before = name
	}
	return names
}

// offset reads a number in version 4's variable-length format. It returns the number's size in bytes, or zero if the
// data is damaged.
func offset(data []byte) (value, n int) {
	for i, b := range data {
		if i == 5 {
			return 0, 0
		}
		if i > 0 {
			value++
		}
		if value = value<<7 | int(b&0x7f); b&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}
