package cells

import "unicode/utf8"

// AppendQuoted appends a cell of CSV in quotes.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for {
		i := 0
		for i < len(s) && s[i] != '"' {
			i++
		}
		dst = append(dst, s[:i]...)
		if i == len(s) {
			return append(dst, '"')
		}
		dst = append(dst, `""`...)
		s = s[i+1:]
	}
}

// AppendJSON appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendJSON(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if b >= ' ' && b != '"' && b != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}
