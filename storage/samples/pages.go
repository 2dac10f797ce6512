package samples

import "sync/atomic"

// Pages keeps directory pages of some files that were asked for lately, decoded: several readers, and questions about one metric after the other, look at the
// same ones. A page has one place, from which another drives it out. All methods may be called concurrently.
type Pages struct {
	places [pagePlaces]atomic.Pointer[page]
}

// pagePlaces bounds the memory: a page has pageEntries, about 16 KB.
const pagePlaces = 256

// page is a decoded page, which nobody changes. That of a file that is closed is found by nobody, and goes with time.
type page struct {
	file    *File
	number  int
	entries []Entry
}

// place is where a page of a file belongs.
func (p *Pages) place(f *File, number int) *atomic.Pointer[page] {
	const prime = 0x9e3779b97f4a7c15
	return &p.places[(uint64(f.pages[number].offset)+uint64(f.Size())*prime)*prime>>(64-8)]
}

// entries returns the entries of a page, which are not to be changed.
func (p *Pages) entries(f *File, number int) ([]Entry, error) {
	place := p.place(f, number)
	if one := place.Load(); one != nil && one.file == f && one.number == number {
		return one.entries, nil
	}
	entries, err := f.parse(make([]Entry, 0, pageEntries), number)
	if err == nil {
		place.Store(&page{f, number, entries})
	}
	return entries, err
}
