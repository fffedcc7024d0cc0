package process

// Head is a writer that keeps the beginning of the output.
type Head struct {
	// Max is the maximum number of bytes in Kept. Cut reports that there was more.
	Max  int
	Kept []byte
	Cut  bool
}

// Write never fails.
func (h *Head) Write(p []byte) (int, error) {
	n := min(len(p), h.Max-len(h.Kept))
	h.Kept = append(h.Kept, p[:n]...)
	h.Cut = h.Cut || n < len(p)
	return len(p), nil
}

// Tail is a writer that keeps the end of the output, at most Max bytes.
type Tail struct {
	Max  int
	Kept []byte
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.Kept = append(t.Kept, p[max(0, len(p)-t.Max):]...)
	if over := len(t.Kept) - t.Max; over > 0 {
		t.Kept = append(t.Kept[:0], t.Kept[over:]...)
	}
	return len(p), nil
}
