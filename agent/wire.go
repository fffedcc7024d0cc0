package agent

// WireForm encodes messages for one model service and caches the encoding. Each message is encoded only once, even if
// many steps show it to the model. A driver creates one WireForm and keeps it. A WireForm is safe for concurrent use.
//
// A message caches only its most recent encoding, so two drivers that take turns on one transcript encode it again at
// each turn.
type WireForm struct {
	encode func(Message) ([]byte, error)
}

// wired is an encoded message and the WireForm that encoded it.
type wired struct {
	form *WireForm
	text string
}

// NewWireForm returns a form that encodes with encode. Encode must return the same bytes for equal messages and must
// not keep the slice it returned.
func NewWireForm(encode func(Message) ([]byte, error)) *WireForm {
	return &WireForm{encode: encode}
}

// Of returns the encoded form of m.
func (f *WireForm) Of(m Message) (string, error) {
	b := m.read()
	if w := b.wire.Load(); w != nil && w.form == f {
		return w.text, nil
	}
	raw, err := f.encode(m)
	if err != nil {
		return "", err
	}
	w := &wired{form: f, text: string(raw)}
	if b != &emptyBody {
		b.wire.Store(w)
	}
	return w.text, nil
}

// AppendMessages appends the encoded form of every message that s shows to the model, separated by commas, and returns
// the extended slice.
func (f *WireForm) AppendMessages(dst []byte, s State) ([]byte, error) {
	for i, m := range s.Messages() {
		text, err := f.Of(m)
		if err != nil {
			return dst, err
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, text...)
	}
	return dst, nil
}
