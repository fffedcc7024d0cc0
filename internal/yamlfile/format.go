package yamlfile

import "strconv"

// FormatKey is the key for the file's format number. It is optional in files of format 1.
const FormatKey = "format"

// CheckFormat reads the file's format number and removes the key from the tree. If the number is invalid or above
// newest, it reports a problem, drops the tree, because the content of another format is unknown, and returns false.
func (f *File) CheckFormat(newest int) bool {
	root, ok := f.Root()
	if !ok || root.Kind() != MappingNode {
		return true
	}
	for i := 0; i+1 < len(f.root.Content); i += 2 {
		if f.root.Content[i].Value != FormatKey {
			continue
		}
		said := Node{f, f.root.Content[i+1]}
		number, err := strconv.Atoi(said.Raw())
		switch {
		case said.Kind() != NumberNode || err != nil || number < 1:
			said.Wrong("%s: expected the number of the file's format, which is %d, got %s", FormatKey, newest, said)
		case number > newest:
			said.Wrong("%s %d is newer than this program reads (%d): use a newer version of Grapnel", FormatKey, number, newest)
		default:
			rest := *f.root
			rest.Content = append(append(rest.Content[:0:0], f.root.Content[:i]...), f.root.Content[i+2:]...)
			f.root = &rest
			return true
		}
		f.root = nil
		return false
	}
	return true
}
