package forecast_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/calc/forecast"
)

// input makes an input of n values without holes and as many places ahead as wanted.
func input(n, ahead int, value func(i int) float64) forecast.Input {
	in := forecast.Input{}
	for i := range n {
		in.Values = append(in.Values, value(i))
	}
	for i := range ahead {
		in.Ahead = append(in.Ahead, n+i)
	}
	return in
}

func listed(ahead int, values ...float64) forecast.Input {
	return input(len(values), ahead, func(i int) float64 { return values[i] })
}

// near compares within a part of the largest wanted magnitude.
func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d: %v", what, len(got), len(want), got)
	}
	size := 1.0
	for _, v := range want {
		size = max(size, math.Abs(v))
	}
	for i, v := range want {
		if !(math.Abs(got[i]-v) <= tolerance*size) {
			t.Errorf("%s: value %d is %v, want %v", what, i, got[i], v)
			return
		}
	}
}

func values(from, n int, value func(i int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = value(from + i)
	}
	return out
}

// run is one algorithm with its parameters; it returns every output.
type run func(ctx context.Context, in forecast.Input) ([]forecast.Output, error)

func holtWinters(h forecast.HoltWinters) run {
	return func(ctx context.Context, in forecast.Input) ([]forecast.Output, error) {
		f, err := h.Run(ctx, in)
		return []forecast.Output{f.Output}, err
	}
}

func arima(a forecast.ARIMA) run {
	return func(ctx context.Context, in forecast.Input) ([]forecast.Output, error) {
		f, err := a.Run(ctx, in)
		return []forecast.Output{f.Output}, err
	}
}

func ssa(a forecast.SSA) run {
	return func(ctx context.Context, in forecast.Input) ([]forecast.Output, error) {
		f, err := a.Run(ctx, in)
		var all []forecast.Output
		for _, g := range f.Groups {
			all = append(all, g.Output)
		}
		return all, err
	}
}

func of(v float64) *float64 { return &v }

// every lists the algorithms with characteristic parameters.
func every(t *testing.T) map[string]run {
	return map[string]run{
		"hw":             holtWinters(forecast.HoltWinters{}),
		"hw no season":   holtWinters(forecast.HoltWinters{Period: 1}),
		"hw period":      holtWinters(forecast.HoltWinters{Period: 4}),
		"hw manual":      holtWinters(forecast.HoltWinters{Period: 3, Alpha: of(0.3), Beta: of(1), Gamma: of(0)}),
		"arima":          arima(forecast.ARIMA{D: forecast.ChooseD}),
		"arima 2":        arima(forecast.ARIMA{P: 2}),
		"arima 3, 1":     arima(forecast.ARIMA{P: 3, D: 1}),
		"ssa":            ssa(forecast.SSA{Threshold: -1}),
		"ssa vector":     ssa(forecast.SSA{Threshold: -1, Vector: true, Limit: 4}),
		"ssa original":   ssa(forecast.SSA{Threshold: -1, Original: true, Limit: 3}),
		"ssa median":     ssa(forecast.SSA{Threshold: -1, Median: true, Limit: 3}),
		"ssa direct":     ssa(forecast.SSA{Threshold: 5, Direct: true}),
		"ssa truncated":  ssa(forecast.SSA{Threshold: -1, Method: forecast.Truncated}),
		"ssa groups":     ssa(forecast.SSA{Threshold: -1, Count: 3}),
		"ssa xmeans":     ssa(forecast.SSA{Threshold: -1, Limit: 8, Clustering: forecast.XMeans}),
		"ssa path":       ssa(forecast.SSA{Threshold: -1, Limit: 8, Clustering: forecast.Novosibirsk, Cut: 0.5, Stack: true}),
		"ssa manual":     ssa(forecast.SSA{Threshold: -1, Groups: sets(t, "1-2", "3-")}),
		"ssa thin":       ssa(forecast.SSA{Threshold: -1, Window: 10}),
		"ssa everything": ssa(forecast.SSA{Threshold: 0, Method: forecast.Full}),
	}
}

func sets(t *testing.T, texts ...string) []forecast.Set {
	t.Helper()
	var all []forecast.Set
	for _, text := range texts {
		s, err := forecast.ParseSet(text, forecast.MaxTriples)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func TestConstantInputStays(t *testing.T) {
	for name, algorithm := range every(t) {
		for _, c := range []float64{0, 0.1, -7, 1e300, 5e-324, math.Pi} {
			for _, gap := range []bool{false, true} {
				in := input(20, 7, func(int) float64 { return c })
				if gap {
					in.Values[0], in.Values[9], in.Values[19] = math.NaN(), math.NaN(), math.NaN()
				}
				outputs, err := algorithm(t.Context(), in)
				if err != nil || len(outputs) == 0 {
					t.Fatalf("%s of %v: %v, %v", name, c, outputs, err)
				}
				for _, out := range outputs {
					if len(out.Forecast) != 7 || len(out.Fitted) == 0 {
						t.Fatalf("%s: %d and %d values", name, len(out.Forecast), len(out.Fitted))
					}
					for _, v := range append(out.Forecast, out.Fitted...) {
						if v != c {
							t.Fatalf("%s of %v gives %v", name, c, v)
						}
					}
				}
			}
		}
	}
}

// Scaling by a power of two changes no digit; finite values stay finite, whatever they are; places are kept.
func TestScalingAndFiniteness(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	shapes := map[string]func(i int) float64{
		"noise":       func(int) float64 { return random.NormFloat64() },
		"random walk": func() func(int) float64 { x := 0.0; return func(int) float64 { x += random.NormFloat64(); return x } }(),
		"explosion":   func(i int) float64 { return math.Pow(-1.9, float64(i)) },
		"steps":       func(i int) float64 { return float64(i / 13 % 3) },
		"spike":       func(i int) float64 { return map[bool]float64{true: 1}[i == 30] },
		"extremes":    func(i int) float64 { return math.MaxFloat64 * float64(1-i%2*2) },
		"line":        func(i int) float64 { return 1e9 + float64(i)*1e-3 },
	}
	for shape, value := range shapes {
		in := input(60, 40, value)
		for name, algorithm := range every(t) {
			outputs, err := algorithm(t.Context(), in)
			if err != nil {
				t.Fatalf("%s of %s: %v", name, shape, err)
			}
			for _, out := range outputs {
				if len(out.Forecast) != 40 || out.From+len(out.Fitted) != 60 {
					t.Fatalf("%s of %s: %d ahead, fitted %d from %d", name, shape, len(out.Forecast), len(out.Fitted), out.From)
				}
				for _, v := range append(out.Forecast, out.Fitted...) {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Fatalf("%s of %s gives %v", name, shape, v)
					}
				}
			}
			if shape == "extremes" {
				continue
			}
			scaled := in
			scaled.Values = values(0, 60, func(i int) float64 { return in.Values[i] * 1024 })
			again, err := algorithm(t.Context(), scaled)
			if err != nil {
				t.Fatal(err)
			}
			for i, out := range outputs {
				near(t, name+" of scaled "+shape, again[i].Forecast, values(0, 40, func(j int) float64 { return out.Forecast[j] * 1024 }), 0)
			}
		}
	}
}

// A line with a pattern of four is what the model is made of: it continues whatever the factors.
func TestHoltWintersContinuesLineAndSeason(t *testing.T) {
	pattern := []float64{3, -1, 0.5, -2.5}
	truth := func(i int) float64 { return 20 + 0.25*float64(i) + pattern[i%4] }
	in := input(48, 30, truth)
	for _, h := range []forecast.HoltWinters{{}, {Period: 4}, {Period: 4, Alpha: of(0.9), Beta: of(0.8), Gamma: of(0.7)}, {Alpha: of(0.2)}} {
		fit, err := h.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if fit.Period != 4 || fit.From != 4 {
			t.Errorf("period %d, fitted from %d", fit.Period, fit.From)
		}
		near(t, "forecast", fit.Forecast, values(48, 30, truth), 1e-9)
		near(t, "fitted", fit.Fitted, in.Values[4:], 1e-9)
	}
}

// One step by hand: first season 10 14, second 12 18: trend ((12-10)+(18-14))/2/2 = 1.5; mean 12, so the line is 11.25 12.75 and the season -1.25 1.25;
// level 12.75. Value 12: expected 12.75+1.5-1.25 = 13; level .5*(12+1.25)+.5*14.25 = 13.75; trend .5*(13.75-12.75)+.5*1.5 = 1.25; season
// .5*(12-14.25)+.5*(-1.25) = -1.75. Value 18: expected 13.75+1.25+1.25 = 16.25; level .5*16.75+.5*15 = 15.875; trend .5*2.125+.5*1.25 = 1.6875;
// season .5*(18-15)+.5*1.25 = 2.125. Ahead: 15.875+1.6875-1.75 = 15.8125; 15.875+3.375+2.125 = 21.375; 15.875+5.0625-1.75 = 19.1875.
func TestHoltWintersByHand(t *testing.T) {
	h := forecast.HoltWinters{Period: 2, Alpha: of(0.5), Beta: of(0.5), Gamma: of(0.5)}
	fit, err := h.Run(t.Context(), listed(3, 10, 14, 12, 18))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "fitted", fit.Fitted, []float64{13, 16.25}, 1e-15)
	near(t, "forecast", fit.Forecast, []float64{15.8125, 21.375, 19.1875}, 1e-15)
}

// Expected values: statsmodels 0.15, ETSModel with additive error, trend and season, smoothed over the values after the first season from the known
// state level 12, trend 0.5, season -0.5 3 -3.5 1, with the factors 0.3, 0.3*0.2 and 0.4 of its error correction form.
func TestHoltWintersAgreesWithStatsmodels(t *testing.T) {
	h := forecast.HoltWinters{Period: 4, Alpha: of(0.3), Beta: of(0.2), Gamma: of(0.4)}
	fit, err := h.Run(t.Context(), listed(5, 10, 14, 8, 13, 12, 17, 9, 15, 13, 19, 11, 16))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "fitted", fit.Fitted, []float64{12, 16, 10.36, 14.930399999999999, 13.933855999999997, 17.98024384, 11.329900697599998, 16.770706456063998}, 1e-12)
	near(t, "forecast", fit.Forecast, []float64{15.059805699624958, 20.162944144005117, 12.60077498134528, 17.91798625833984, 16.746580021145604}, 1e-12)
}

// Without a season it is Holt's line: 1 3 4, factors 1/2: level 1+... start level 1, trend 2. Value 3: expected 3, level 3, trend 2. Value 4:
// expected 5, level 4.5, trend .5*1.5+.5*2 = 1.75. Ahead 6.25, 8.
func TestHoltLine(t *testing.T) {
	fit, err := forecast.HoltWinters{Period: 1, Alpha: of(0.5), Beta: of(0.5)}.Run(t.Context(), listed(2, 1, 3, 4))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "fitted", fit.Fitted, []float64{3, 5}, 1e-15)
	near(t, "forecast", fit.Forecast, []float64{6.25, 8}, 1e-15)
	if fit.Gamma != 0 || fit.Period != 1 {
		t.Errorf("period %d, gamma %v", fit.Period, fit.Gamma)
	}
}

// The day has 24 places of which a filter left 9 to 17: each hour keeps its season, level and trend do not move overnight.
func TestHoltWintersThinned(t *testing.T) {
	in := forecast.Input{}
	shape := func(slot int) float64 { return 100 + 10*math.Sin(float64(slot%24)) }
	for day := range 8 {
		for hour := 9; hour < 18; hour++ {
			slot := day*24 + hour
			if day < 6 {
				in.Slots, in.Values = append(in.Slots, slot), append(in.Values, shape(slot))
			} else {
				in.Ahead = append(in.Ahead, slot)
			}
		}
	}
	for _, period := range []int{0, 24} {
		fit, err := forecast.HoltWinters{Period: period}.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, len(in.Ahead))
		for i, slot := range in.Ahead {
			want[i] = shape(slot)
		}
		near(t, "forecast", fit.Forecast, want, 1e-9)
		if fit.Period != 24 || fit.From != 24 || len(fit.Fitted) != 54-24 {
			t.Errorf("period %d, %d fitted from %d", fit.Period, len(fit.Fitted), fit.From)
		}
	}
}

func TestHoltWintersFindsNoisyPeriod(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	truth := func(i int) float64 {
		return 50 + 8*math.Sin(2*math.Pi*float64(i)/24) + 3*math.Cos(2*math.Pi*float64(i)/12)
	}
	in := input(480, 48, func(i int) float64 { return truth(i) + random.NormFloat64() })
	fit, err := forecast.HoltWinters{}.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if fit.Period != 24 {
		t.Errorf("period %d, want 24", fit.Period)
	}
	near(t, "forecast", fit.Forecast, values(480, 48, truth), 2.5/61)
	// A given factor is kept, the others are chosen.
	if fit, err = (forecast.HoltWinters{Period: 24, Beta: of(0.25)}).Run(t.Context(), in); err != nil || fit.Beta != 0.25 {
		t.Errorf("beta %v, %v", fit.Beta, err)
	}
}

// x[t] = 1 + 2 x[t-1]: rows (1,1,3) (1,3,7) (1,7,15): normal equations give exactly c 1, a 2.
func TestARIMAByHand(t *testing.T) {
	fit, err := forecast.ARIMA{P: 1}.Run(t.Context(), listed(2, 1, 3, 7, 15))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "coefficients", fit.Coefficients, []float64{1, 2}, 1e-12)
	near(t, "forecast", fit.Forecast, []float64{31, 63}, 1e-12)
	near(t, "fitted", fit.Fitted, []float64{1, 3, 7, 15}, 1e-12)
	// 1 2 4 3 5: pairs (1,2) (2,4) (4,3) (3,5): means 2.5 and 3.5, sxx 5, sxy 1.5*1.5+.5*.5... = (-1.5)(-1.5)+(-.5)(.5)+(1.5)(-.5)+(.5)(1.5) = 2: a = 0.4, c = 2.5.
	if fit, err = (forecast.ARIMA{P: 1}).Run(t.Context(), listed(2, 1, 2, 4, 3, 5)); err != nil {
		t.Fatal(err)
	}
	near(t, "coefficients", fit.Coefficients, []float64{2.5, 0.4}, 1e-12)
	near(t, "forecast", fit.Forecast, []float64{4.5, 4.3}, 1e-12)
	near(t, "fitted", fit.Fitted, []float64{1, 2.9, 3.3, 4.1, 3.7}, 1e-12)
}

var digits = []float64{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}

// Expected values: numpy.linalg.lstsq of the design matrix of sixteen digits.
func TestARIMAAgreesWithNumpy(t *testing.T) {
	fit, err := forecast.ARIMA{P: 3}.Run(t.Context(), listed(3, digits...))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "coefficients", fit.Coefficients, []float64{4.171831600313369, -0.02527901918191952, 0.11173527526529428, 0.20243876563872445}, 1e-12)
	near(t, "forecast", fit.Forecast, []float64{6.51868337962633, 6.164200394663338, 5.351689839001499}, 1e-12)
	if fit, err = (forecast.ARIMA{P: 2, D: 1}).Run(t.Context(), listed(3, digits...)); err != nil {
		t.Fatal(err)
	}
	near(t, "coefficients", fit.Coefficients, []float64{0.5366719242902215, -0.7797384332281813, -0.43470688748685615}, 1e-12)
	near(t, "forecast", fit.Forecast, []float64{7.345688748685596, 7.102101461699512, 5.9396069255708}, 1e-12)
}

func TestARIMAContinuesWhatObeysIt(t *testing.T) {
	sine := func(i int) float64 { return 5 + 2*math.Sin(float64(i)/3) }
	trend := func(i int) float64 { return 0.1*float64(i) + math.Sin(float64(i)) }
	for _, tt := range []struct {
		name  string
		model forecast.ARIMA
		truth func(int) float64
	}{
		{"sine, 2", forecast.ARIMA{P: 2}, sine}, {"sine, chosen", forecast.ARIMA{D: forecast.ChooseD}, sine},
		{"sine, too many", forecast.ARIMA{P: 7}, sine},
		{"sine and line", forecast.ARIMA{P: 3, D: 1}, trend}, {"sine and line, chosen", forecast.ARIMA{D: forecast.ChooseD}, trend},
		{"line", forecast.ARIMA{D: forecast.ChooseD}, func(i int) float64 { return float64(3*i - 7) }},
	} {
		fit, err := tt.model.Run(t.Context(), input(100, 30, tt.truth))
		if err != nil {
			t.Fatal(err)
		}
		near(t, tt.name, fit.Forecast, values(100, 30, tt.truth), 1e-6)
	}
}

// The coefficients of a simulated AR(2) come back within their standard error, some 0.01 for 5,000 values.
func TestARIMARecoversCoefficients(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	x := []float64{0, 0}
	for i := 2; i < 5002; i++ {
		x = append(x, 1+0.75*x[i-1]-0.5*x[i-2]+random.NormFloat64())
	}
	fit, err := forecast.ARIMA{P: 2}.Run(t.Context(), listed(200, x[2:]...))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "coefficients", fit.Coefficients, []float64{1, 0.75, -0.5}, 0.04)
	near(t, "far ahead is the mean 1/(1-.75+.5)", fit.Forecast[150:], values(0, 50, func(int) float64 { return 4.0 / 3 }), 0.1)
}

// Expected values: numpy.linalg.svd of the whole trajectory matrix of sixteen digits, window 6, and the formulas of GZ carried out on matrices.
func TestSSAAgreesWithNumpy(t *testing.T) {
	base := forecast.SSA{Threshold: -1, Window: 38, Groups: sets(t, "1;2", "3-4")} // floor(16*.38) = 6
	first := [][]float64{{3.956149515539908, 5.417335282013121, 4.811524706022238}, {-1.9115696774145008, 0.07755010633010458, -1.3320173820728585}}
	medians := []float64{5.2132175708032396, 0.10381939045762248}
	recurrent := [][]float64{{9.891953367015756, 8.473237184173609, 7.109164355630303}, {-0.4543008886893021, 0.21668719814792978, 0.5447953053337606}}
	vectors := [][]float64{{8.909994541259124, 9.214473201279075, 10.11608666430385}, {0.02902866216176662, 0.03234239354918964, -0.0028922736200723185}}
	// the same from the last window of the reconstructed series, projected, and by recurrence from the input
	smoothed := [][]float64{{8.82647709212407, 9.231747643754604, 10.033158284950467}, {0.018803818452375127, 0.015948775239043183, -0.001929879744336906}}
	original := [][]float64{{9.219851959864638, 9.220453561021207, 5.266671337690919}, {-5.8088075025704935, -7.657708620016038, -3.2548163189963457}}
	for _, method := range []forecast.Method{forecast.Auto, forecast.Full, forecast.Truncated} {
		for _, direct := range []bool{false, true} {
			model := base
			model.Method, model.Direct = method, direct
			fit, err := model.Run(t.Context(), listed(3, digits...))
			if err != nil || len(fit.Groups) != 2 || fit.Window != 6 {
				t.Fatalf("%v, %v", fit, err)
			}
			model.Vector = true
			vector, err := model.Run(t.Context(), listed(3, digits...))
			if err != nil {
				t.Fatal(err)
			}
			model.Median = true
			median, err := model.Run(t.Context(), listed(3, digits...))
			if err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				f := fit.Groups[i].Fitted
				near(t, "fitted", []float64{f[0], f[7], f[15]}, first[i], 1e-12)
				near(t, "recurrent", fit.Groups[i].Forecast, recurrent[i], 1e-11)
				near(t, "median", median.Groups[i].Fitted[7:8], medians[i:i+1], 1e-12)
				near(t, "vector", vector.Groups[i].Forecast, smoothed[i], 1e-11)
			}
			model.Vector, model.Median, model.Original = true, false, true
			if vector, err = model.Run(t.Context(), listed(3, digits...)); err != nil {
				t.Fatal(err)
			}
			model.Vector = false
			if fit, err = model.Run(t.Context(), listed(3, digits...)); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				near(t, "vector of the input", vector.Groups[i].Forecast, vectors[i], 1e-11)
				near(t, "recurrent of the input", fit.Groups[i].Forecast, original[i], 1e-11)
			}
		}
	}
}

// A sum of r exponentials, sines and polynomials has rank r and continues exactly.
func TestSSAContinuesFiniteRank(t *testing.T) {
	truth := func(i int) float64 { return 2 + 0.05*float64(i) + math.Sin(2*math.Pi*float64(i)/12) }
	for _, model := range []forecast.SSA{
		{Threshold: -1, Limit: 4}, {Threshold: -1}, {Threshold: -1, Limit: 4, Method: forecast.Truncated}, {Threshold: -1, Limit: 4, Vector: true},
		{Threshold: -1, Limit: 4, Original: true}, {Threshold: -1, Limit: 50}, {Threshold: -1, Limit: 4, Direct: true}, {Threshold: -1, Limit: 4, Median: true},
		{Threshold: 0.001}, {Threshold: -1, Limit: 4, Window: 20},
	} {
		fit, err := model.Run(t.Context(), input(120, 40, truth))
		if err != nil {
			t.Fatal(err)
		}
		if fit.Triples != 4 {
			t.Errorf("%+v: %d eigentriples, want 4", model, fit.Triples)
		}
		near(t, "forecast", fit.Groups[0].Forecast, values(120, 40, truth), 1e-9)
		near(t, "fitted", fit.Groups[0].Fitted, values(0, 120, truth), 1e-9)
	}
}

// Line and wave are separable: each clustering finds them, and their series add up to the input.
func TestSSAGroups(t *testing.T) {
	line := func(i int) float64 { return 10 + 0.05*float64(i) }
	wave := func(i int) float64 { return 2 * math.Sin(2*math.Pi*float64(i)/12) }
	in := input(240, 10, func(i int) float64 { return line(i) + wave(i) })
	for name, model := range map[string]forecast.SSA{
		"hierarchical": {Count: 2}, "xmeans": {Count: 2, Clustering: forecast.XMeans}, "path": {Count: 2, Clustering: forecast.Novosibirsk, Cut: 0.5},
		"manual": {Groups: sets(t, "1;4", "2-3")},
	} {
		model.Threshold, model.Limit = -1, 4
		fit, err := model.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if len(fit.Groups) != 2 || fit.Groups[0].Name != "A" || fit.Groups[1].Name != "B" {
			t.Errorf("%s: %d groups", name, len(fit.Groups))
			continue
		}
		near(t, name+" line", fit.Groups[0].Forecast, values(240, 10, line), 0.05)
		near(t, name+" wave", fit.Groups[1].Forecast, values(240, 10, wave), 0.2)
		sum := values(0, 240, func(i int) float64 { return fit.Groups[0].Fitted[i] + fit.Groups[1].Fitted[i] })
		near(t, name+" sum", sum, in.Values, 1e-9)
	}
	stacked, err := forecast.SSA{Threshold: -1, Limit: 4, Count: 2, Stack: true}.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the last stacked group has everything", stacked.Groups[1].Fitted, in.Values, 1e-9)
	letters, err := forecast.ParseLetters("A-B", 500)
	if err != nil {
		t.Fatal(err)
	}
	union, err := forecast.SSA{Threshold: -1, Limit: 4, Count: 2, Union: []forecast.Set{letters}}.Run(t.Context(), in)
	if err != nil || len(union.Groups) != 1 {
		t.Fatalf("%v, %v", union, err)
	}
	near(t, "union", union.Groups[0].Fitted, in.Values, 1e-9)
}

func TestSSAKeepsTheNumberOfGroups(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	in := input(200, 10, func(i int) float64 { return math.Sin(float64(i)/5) + random.NormFloat64() })
	for k := 1; k <= 6; k++ {
		fit, err := forecast.SSA{Threshold: -1, Count: k}.Run(t.Context(), in)
		if err != nil || len(fit.Groups) != k {
			t.Errorf("%d groups, want %d, %v", len(fit.Groups), k, err)
		}
	}
}

// The leading eigentriples by multiplication alone agree with the full decomposition.
func TestTruncatedAgreesWithFull(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	in := input(700, 20, func(i int) float64 {
		return math.Sin(float64(i)/5) + 0.5*math.Cos(float64(i)/2) + 0.1*random.NormFloat64()
	})
	truncated, err := forecast.SSA{Threshold: -1, Limit: 4, Method: forecast.Truncated}.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	full, err := forecast.SSA{Threshold: -1, Limit: 4, Method: forecast.Full}.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "fitted", truncated.Groups[0].Fitted, full.Groups[0].Fitted, 1e-9)
	near(t, "forecast", truncated.Groups[0].Forecast, full.Groups[0].Forecast, 1e-9)
}

// A long input has a bounded window where the whole spectrum is asked for.
func TestFullWindowIsBounded(t *testing.T) {
	in := input(2000, 3, func(i int) float64 { return math.Sin(float64(i) / 7) })
	fit, err := forecast.SSA{Threshold: -1, Limit: 2, Method: forecast.Full}.Run(t.Context(), in)
	if err != nil || fit.Window != forecast.MaxFullWindow || fit.Method != forecast.Full {
		t.Errorf("window %d, %v", fit.Window, err)
	}
	fit, err = forecast.SSA{Threshold: -1, Limit: 2}.Run(t.Context(), in)
	if err != nil || fit.Window != 1000 || fit.Method != forecast.Truncated {
		t.Errorf("window %d, %v", fit.Window, err)
	}
	near(t, "sine", fit.Groups[0].Forecast, values(2000, 3, func(i int) float64 { return math.Sin(float64(i) / 7) }), 1e-9)
}

// Gaps inside lie on the line; leading ones have no fitted value; the forecast follows trailing ones.
func TestGaps(t *testing.T) {
	nan := math.NaN()
	in := listed(2, nan, 3, nan, 7, 9, 11, 13, nan, nan, 19, 21, nan)
	line := func(i int) float64 { return float64(2*i + 1) }
	for name, algorithm := range map[string]run{
		"hw": holtWinters(forecast.HoltWinters{Period: 1}), "arima": arima(forecast.ARIMA{P: 1}), "ssa": ssa(forecast.SSA{Threshold: -1, Limit: 2}),
	} {
		out, err := algorithm(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		near(t, name, out[0].Forecast, values(12, 2, line), 1e-9)
		near(t, name+" fitted", out[0].Fitted, values(out[0].From, len(out[0].Fitted), line), 1e-9)
		if out[0].From+len(out[0].Fitted) != 11 {
			t.Errorf("%s: fitted %d from %d", name, len(out[0].Fitted), out[0].From)
		}
	}
}

func TestTooShort(t *testing.T) {
	for name, algorithm := range map[string]run{
		"hw": holtWinters(forecast.HoltWinters{Period: 4}), "arima": arima(forecast.ARIMA{P: 2}), "ssa": ssa(forecast.SSA{Threshold: -1}),
		"arima chosen": arima(forecast.ARIMA{D: forecast.ChooseD}),
	} {
		for _, in := range []forecast.Input{listed(1, 1, 2), listed(1, math.NaN()), listed(1)} {
			_, err := algorithm(t.Context(), in)
			var short *forecast.ShortError
			if !errors.As(err, &short) {
				t.Errorf("%s of %v: %v", name, in.Values, err)
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in := input(300, 10, func(i int) float64 { return float64(i * i % 17) })
	for name, algorithm := range every(t) {
		if _, err := algorithm(ctx, in); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBaseline(t *testing.T) {
	times := []core.Time{0, 1, 2, 3, 4, 5, 6, 7}
	b := forecast.Baseline{Back: func(t core.Time, n int64) core.Time { return t - core.Time(3*n) }}
	in := forecast.BaselineInput{Times: times, Values: []float64{1, 2, 3, 5, 7, 11, math.NaN(), 13}, Ahead: []core.Time{8, 9, 10, 14}}
	for name, want := range map[string][2][]float64{
		// 8: 5 and 2; 9: 6 (not a number), 3, 0; 10: 7, 4, 1; 14: 11 (ahead), 8 (ahead), 5, 2
		"AVG":   {{7, 3, 22.0 / 3, 7}, {1, 2, 3, 3, 4.5}},
		"COUNT": {{2, 2, 3, 2}, {1, 1, 1, 2, 2}},
		"LAST":  {{11, 5, 13, 11}, {1, 2, 3, 5, 7}},
		"FIRST": {{3, 1, 2, 3}, {1, 2, 3, 1, 2}},
	} {
		var err error
		if b.Function, err = calc.ParseFunction(name); err != nil {
			t.Fatal(err)
		}
		ahead, fitted, err := b.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		near(t, name, ahead.Values, want[0], 1e-15)
		near(t, name+" fitted", fitted.Values, want[1], 1e-15)
		if fitted.Times[0] != 3 {
			t.Errorf("first fitted time %d", fitted.Times[0])
		}
	}
	// Three tenths by three are not a tenth in doubles; the mean of equal numbers is that number.
	b.Function, _ = calc.ParseFunction("AVG")
	in.Values = values(0, 8, func(int) float64 { return 0.1 })
	if ahead, _, err := b.Run(t.Context(), in); err != nil || ahead.Values[2] != 0.1 {
		t.Errorf("%v, %v", ahead, err)
	}
}

func TestSets(t *testing.T) {
	for _, bad := range []string{"", "0", "a", "3-1", "-", "501", "1;;", "1--2", "1;b"} {
		if s, err := forecast.ParseSet(bad, 500); err == nil && bad != "1;;" {
			t.Errorf("%q is read as %v", bad, s)
		}
	}
	for _, bad := range []string{"", "1", "C-A", "ZZZZZZZZZZZZZZ", "ä"} {
		if s, err := forecast.ParseLetters(bad, 500); err == nil {
			t.Errorf("%q is read as %v", bad, s)
		}
	}
	for n, name := range map[int]string{1: "A", 26: "Z", 27: "AA", 52: "AZ", 53: "BA"} {
		if got := forecast.Letters(n); got != name {
			t.Errorf("group %d is %s, want %s", n, got, name)
		}
		if s, err := forecast.ParseLetters(name, 500); err != nil || len(s) != 1 {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// What is left of the error is the noise: automatic parameters find the signal.
func TestNoisySignals(t *testing.T) {
	wave := func(i, period int) float64 { return math.Sin(2 * math.Pi * float64(i) / float64(period)) }
	office := func(i int) float64 {
		if i/24%7 < 5 && i%24 >= 8 && i%24 < 18 {
			return 80
		}
		return 10
	}
	ssaAuto, arimaAuto := ssa(forecast.SSA{Threshold: -1}), arima(forecast.ARIMA{D: forecast.ChooseD})
	for _, tt := range []struct {
		name   string
		signal func(i int) float64
		models map[string]run
	}{
		{"a day", func(i int) float64 { return 50 + 10*wave(i, 24) }, map[string]run{"ssa": ssaAuto, "arima": arimaAuto}},
		{"day and week", func(i int) float64 { return 50 + 10*wave(i, 24) + 8*wave(i, 168) }, map[string]run{"ssa": ssaAuto, "arima": arimaAuto}},
		{"a day on a slope", func(i int) float64 { return 0.05*float64(i) + 5*wave(i, 24) }, map[string]run{"ssa": ssaAuto, "arima": arimaAuto}},
		{"working hours", office, map[string]run{"arima": arimaAuto}},
		{"nothing", func(int) float64 { return 0 }, map[string]run{"ssa": ssaAuto, "arima": arimaAuto}},
	} {
		tt.models["hw"] = holtWinters(forecast.HoltWinters{})
		for name, model := range tt.models {
			for seed := range uint64(3) {
				random := rand.New(rand.NewPCG(seed, 1))
				in := input(1000, 100, func(i int) float64 { return tt.signal(i) + random.NormFloat64() })
				out, err := model(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				for i, v := range out[0].Forecast {
					sum += (v - tt.signal(1000+i)) * (v - tt.signal(1000+i))
				}
				// The amplitude of each signal is several times the noise, which is 1.
				if e := math.Sqrt(sum / 100); e > 1.5 {
					t.Errorf("%s of %s, seed %d: error %.2f of the signal, want less than 1.5 times the noise", name, tt.name, seed, e)
				}
			}
		}
	}
}

// Whatever the parameters, an answer has its shape and is finite, or the input is too short.
func FuzzParameters(f *testing.F) {
	f.Add(uint64(1), 30, 10, 4, 0.3, -1.0, uint8(0))
	f.Add(uint64(2), 3, 1, 1, 1.0, 50.0, uint8(255))
	f.Add(uint64(3), 50, 0, 9, 0.0, 5.0, uint8(85))
	f.Fuzz(func(t *testing.T, seed uint64, n, ahead, p int, factor, threshold float64, flags uint8) {
		if n < 0 || n > 80 || ahead < 0 || ahead > 50 || p < 0 || p > 100 || !(factor >= 0 && factor <= 1) || !(threshold < 100) {
			t.Skip()
		}
		random := rand.New(rand.NewPCG(seed, 0))
		in := input(n, ahead, func(int) float64 {
			if random.IntN(10) == 0 {
				return math.NaN()
			}
			return random.NormFloat64() * math.Pow(2, float64(random.IntN(int(seed%7)+1)))
		})
		in.Score = int(seed % 11)
		flag := func(bit int) bool { return flags>>bit&1 == 1 }
		model := forecast.SSA{Limit: p, Threshold: threshold, Window: factor * 50, Count: p % 5, Clustering: forecast.Clustering(flags % 3), Cut: factor,
			Stack: flag(2), Median: flag(3), Direct: flag(4), Vector: flag(5), Original: flag(6)}
		if flag(7) {
			model.Method = forecast.Truncated
		}
		for _, algorithm := range []run{ssa(model), arima(forecast.ARIMA{P: p, D: int(flags % 2)}), arima(forecast.ARIMA{D: forecast.ChooseD}),
			holtWinters(forecast.HoltWinters{Period: p}), holtWinters(forecast.HoltWinters{Period: p, Alpha: &factor, Gamma: &factor})} {
			outputs, err := algorithm(t.Context(), in)
			var short *forecast.ShortError
			if err != nil && !errors.As(err, &short) {
				t.Fatal(err)
			}
			for _, out := range outputs {
				if err != nil {
					break
				}
				if len(out.Forecast) != ahead {
					t.Fatalf("%d values ahead, want %d", len(out.Forecast), ahead)
				}
				for _, v := range append(out.Forecast, out.Fitted...) {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Fatalf("%v in %v", v, out)
					}
				}
			}
		}
	})
}

func BenchmarkAlgorithms(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	in := input(10_000, 100, func(i int) float64 {
		return 20 + 0.001*float64(i) + 5*math.Sin(2*math.Pi*float64(i)/96) + random.NormFloat64()
	})
	for name, algorithm := range map[string]run{
		"hw": holtWinters(forecast.HoltWinters{}), "hw-period": holtWinters(forecast.HoltWinters{Period: 96}), "arima": arima(forecast.ARIMA{D: forecast.ChooseD}),
		"arima-300": arima(forecast.ARIMA{P: 300}), "ssa": ssa(forecast.SSA{Threshold: -1}), "ssa-full": ssa(forecast.SSA{Threshold: -1, Method: forecast.Full}),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := algorithm(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
