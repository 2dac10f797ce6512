package forecast

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Set is a list of numbers from 1, written 1;3-5;8- : single ones and ranges, the ends of which may be open.
type Set []span

type span struct{ from, to int } // to 0: open

// ParseSet reads numbers separated by semicolons or commas, none above most.
func ParseSet(text string, most int) (Set, error) {
	return parseSet(text, most, func(s string) (int, bool) {
		n, err := strconv.Atoi(s)
		return n, err == nil
	})
}

// ParseLetters reads a Set whose numbers are written as letters: A is 1, Z is 26, AA is 27.
func ParseLetters(text string, most int) (Set, error) {
	return parseSet(text, most, func(s string) (int, bool) {
		n := 0
		for _, c := range strings.ToUpper(s) {
			if c < 'A' || c > 'Z' || n > most {
				return 0, false
			}
			n = n*26 + int(c-'A') + 1
		}
		return n, s != ""
	})
}

// Letters is the name of group n, counted from 1.
func Letters(n int) string {
	name := ""
	for ; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}

func parseSet(text string, most int, number func(string) (int, bool)) (Set, error) {
	var set Set
	for part := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ';' || c == ',' }) {
		part = strings.TrimSpace(part)
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		s := span{from: 1}
		ok := part != "" && part != "-"
		read := func(text string, n *int) {
			if text = strings.TrimSpace(text); text != "" {
				v, valid := number(text)
				ok = ok && valid && v >= 1 && v <= most
				*n = v
			}
		}
		read(low, &s.from)
		read(high, &s.to)
		if !ok || s.to != 0 && s.to < s.from {
			return nil, fmt.Errorf("%q is no list of groups or eigentriples such as 1;3-5;8-", text)
		}
		set = append(set, s)
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("%q is no list of groups or eigentriples such as 1;3-5;8-", text)
	}
	return set, nil
}

// of returns the indices from 0 that the set names among n, ascending.
func (s Set) of(n int) []int {
	var list []int
	for i := range n {
		if slices.ContainsFunc(s, func(p span) bool { return i+1 >= p.from && (p.to == 0 || i+1 <= p.to) }) {
			list = append(list, i)
		}
	}
	return list
}

// most returns the greatest number the set names; open is true when it has no end.
func (s Set) most() (n int, open bool) {
	for _, p := range s {
		n, open = max(n, p.from, p.to), open || p.to == 0
	}
	return n, open
}

// Clustering says how eigentriples are put into groups.
type Clustering uint8

const (
	// Hierarchical merges the two closest clusters until Count are left, by average linkage.
	Hierarchical Clustering = iota
	// XMeans is k-means with the number of clusters, up to Count, that has the best Bayesian information criterion (D. Pelleg, A. Moore, X-means, 2000).
	XMeans
	// Novosibirsk cuts the shortest open path (N. Zagoruiko, Applied methods of data and knowledge analysis): of the minimum spanning tree the longest
	// edges go, as long as they are longer than Cut and no more than Count clusters come of it.
	Novosibirsk
)

// clusters puts eigentriples into groups by their distances, 0 to 1, or by their features. The groups are in order of their first member.
func (a SSA) clusters(distance, features [][]float64) [][]int {
	n, count := len(distance), a.Count
	if count <= 0 {
		count = n
	}
	var labels []int
	switch a.Clustering {
	case XMeans:
		labels = xmeans(features, min(count, n))
	case Novosibirsk:
		labels = cutTree(distance, count, a.Cut)
	default:
		labels = linkage(distance, min(count, n))
	}
	var groups [][]int
	place := map[int]int{}
	for i, label := range labels {
		at, ok := place[label]
		if !ok {
			at = len(groups)
			place[label] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}

// linkage merges clusters until count are left; distances between clusters are means over their members.
func linkage(distance [][]float64, count int) []int {
	n := len(distance)
	d, size, labels := make([][]float64, n), make([]int, n), make([]int, n)
	for i := range d {
		d[i], size[i], labels[i] = slices.Clone(distance[i]), 1, i
	}
	for left := n; left > count; left-- {
		a, b := -1, -1
		for i := range n {
			for j := i + 1; j < n && size[i] > 0; j++ {
				if size[j] > 0 && (a < 0 || d[i][j] < d[a][b]) {
					a, b = i, j
				}
			}
		}
		for i := range n {
			mean := (d[a][i]*float64(size[a]) + d[b][i]*float64(size[b])) / float64(size[a]+size[b])
			d[a][i], d[i][a] = mean, mean
		}
		size[a], size[b] = size[a]+size[b], 0
		for i, label := range labels {
			if label == b {
				labels[i] = a
			}
		}
	}
	return labels
}

// cutTree grows the minimum spanning tree by Prim's method and removes its longest edges.
func cutTree(distance [][]float64, count int, cut float64) []int {
	n := len(distance)
	type edge struct {
		node, parent int
		length       float64
	}
	nearest := make([]edge, n)
	for i := range nearest {
		nearest[i] = edge{i, 0, distance[0][i]}
	}
	open := nearest[1:]
	var tree []edge
	for len(open) > 0 {
		at := 0
		for i := range open {
			if open[i].length < open[at].length {
				at = i
			}
		}
		e := open[at]
		open[at] = open[len(open)-1]
		open = open[:len(open)-1]
		tree = append(tree, e)
		for i := range open {
			if d := distance[e.node][open[i].node]; d < open[i].length {
				open[i].parent, open[i].length = e.node, d
			}
		}
	}
	order := slices.Clone(tree)
	slices.SortStableFunc(order, func(a, b edge) int {
		switch {
		case a.length > b.length:
			return -1
		case a.length < b.length:
			return 1
		}
		return a.node - b.node
	})
	removed := map[int]bool{}
	for _, e := range order {
		if len(removed)+1 < count && e.length > cut {
			removed[e.node] = true
		}
	}
	labels := make([]int, n)
	for _, e := range tree { // parents stand before their children
		labels[e.node] = labels[e.parent]
		if removed[e.node] {
			labels[e.node] = e.node
		}
	}
	return labels
}

// xmeans returns the labels of the k-means with the best criterion of all k up to most. The centres start far from each other, the first at point 0.
func xmeans(points [][]float64, most int) []int {
	var best []int
	top := math.Inf(-1)
	for k := 1; k <= most; k++ {
		labels, spread := kmeans(points, k)
		if score := information(points, labels, k, spread); score > top {
			best, top = labels, score
		}
	}
	return best
}

// kmeans returns the labels and the sum of squared distances to the centres.
func kmeans(points [][]float64, k int) (labels []int, spread float64) {
	centres := [][]float64{slices.Clone(points[0])}
	for len(centres) < k {
		far, most := 0, -1.0
		for i, p := range points {
			if _, d := closest(centres, p); d > most {
				far, most = i, d
			}
		}
		centres = append(centres, slices.Clone(points[far]))
	}
	labels = make([]int, len(points))
	const rounds = 100
	for range rounds {
		changed := false
		spread = 0
		for i, p := range points {
			at, d := closest(centres, p)
			changed = changed || labels[i] != at
			labels[i] = at
			spread += d
		}
		if !changed {
			break
		}
		for c, centre := range centres {
			n := 0.0
			sum := make([]float64, len(centre))
			for i, p := range points {
				if labels[i] == c {
					n++
					for j := range p {
						sum[j] += p[j]
					}
				}
			}
			for j := range centre {
				if n > 0 {
					centre[j] = sum[j] / n
				}
			}
		}
	}
	return labels, spread
}

func closest(centres [][]float64, p []float64) (at int, distance float64) {
	distance = math.Inf(1)
	for c, centre := range centres {
		d := 0.0
		for j := range p {
			d += (p[j] - centre[j]) * (p[j] - centre[j])
		}
		if d < distance {
			at, distance = c, d
		}
	}
	return at, distance
}

// information is the criterion of Pelleg and Moore: the log-likelihood of spherical clusters with one variance, less half the parameters times the
// logarithm of the number of points.
func information(points [][]float64, labels []int, k int, spread float64) float64 {
	n, m := float64(len(points)), float64(len(points[0]))
	if len(points) <= k {
		return math.Inf(-1)
	}
	variance := max(spread/(n-float64(k))/m, 1e-6) // features have magnitude 1
	score := -n*m/2*math.Log(2*math.Pi*variance) - m*(n-float64(k))/2
	sizes := make([]float64, k)
	for _, label := range labels {
		sizes[label]++
	}
	for _, size := range sizes {
		if size > 0 {
			score += size * math.Log(size/n)
		}
	}
	return score - float64(k)*(m+1)/2*math.Log(n)
}
