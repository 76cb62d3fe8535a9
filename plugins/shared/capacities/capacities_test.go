// SPDX-License-Identifier: Apache-2.0

package capacities

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	storagev1beta1 "k8s.io/api/storage/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
)

// server is an API server that has some versions of CSIStorageCapacity, each with an object that is named for it.
type server struct {
	mutex sync.Mutex
	// codes has the status for a version: 200 serves it, and 0 is 404.
	codes    map[string]int
	requests []string
}

func (s *server) set(codes map[string]int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.codes, s.requests = codes, nil
}

func (s *server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	version := strings.Split(request.URL.Path, "/")[3]
	s.mutex.Lock()
	code := s.codes[version]
	s.requests = append(s.requests, version)
	s.mutex.Unlock()
	if code == 0 {
		code = http.StatusNotFound
	}
	if code != http.StatusOK {
		w.WriteHeader(code)
		return
	}
	gv := Versions[0]
	if version == "v1beta1" {
		gv = Versions[1]
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(gv, &storagev1beta1.CSIStorageCapacity{}, &storagev1beta1.CSIStorageCapacityList{})
	metav1.AddToGroupVersion(scheme, gv)
	codecs := serializer.NewCodecFactory(scheme)
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), request.Header.Get("Accept"))
	object := capacity(version)
	if request.URL.Query().Get("watch") == "" {
		w.Header().Set("Content-Type", info.MediaType)
		codecs.EncoderForVersion(info.Serializer, gv).Encode(&storagev1beta1.CSIStorageCapacityList{
			ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []storagev1beta1.CSIStorageCapacity{*object}}, w)
		return
	}
	w.Header().Set("Content-Type", info.MediaType+";stream=watch")
	frames := streaming.NewEncoder(info.StreamSerializer.Framer.NewFrameWriter(w),
		codecs.EncoderForVersion(info.StreamSerializer.Serializer, gv))
	restwatch.NewEncoder(frames, codecs.EncoderForVersion(info.Serializer, gv)).Encode(&watch.Event{Type: watch.Added, Object: object})
}

func capacity(name string) *storagev1beta1.CSIStorageCapacity {
	size := resource.MustParse("3Gi")
	return &storagev1beta1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"}, StorageClassName: "fast", Capacity: &size,
		MaximumVolumeSize: &size, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}},
	}
}

func served23(t *testing.T, contentType string) (*served, *server) {
	s := &server{}
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	config := &rest.Config{Host: served.URL, ContentConfig: rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType}}
	v1, err := v1Client(config)
	if err != nil {
		t.Fatal(err)
	}
	return newServed(v1, kubernetes.NewForConfigOrDie(config).StorageV1beta1().RESTClient()), s
}

func TestVersionOfTheServer(t *testing.T) {
	const ok, forbidden, unavailable = http.StatusOK, http.StatusForbidden, http.StatusServiceUnavailable
	type served = map[string]int
	for _, tt := range []struct {
		name string
		// servers are asked one after the other, as if the server's version changed.
		servers []served
		// want is the version that the last list and watch have, or the error's texts.
		want     string
		wantErr  []string
		requests []string
	}{
		{"1.23: v1beta1 alone", []served{{"v1beta1": ok}}, "v1beta1", nil, []string{"v1", "v1beta1", "v1beta1"}},
		{"1.24 to 1.26: both", []served{{"v1": ok, "v1beta1": ok}}, "v1", nil, []string{"v1", "v1"}},
		{"1.27: v1 alone", []served{{"v1": ok}}, "v1", nil, []string{"v1", "v1"}},
		{"upgrade from 1.23 to 1.27", []served{{"v1beta1": ok}, {"v1": ok}}, "v1", nil, []string{"v1beta1", "v1", "v1"}},
		{"way back from 1.27 to 1.23", []served{{"v1": ok}, {"v1beta1": ok}}, "v1beta1", nil, []string{"v1", "v1beta1", "v1beta1"}},
		{"v1 is refused", []served{{"v1": forbidden, "v1beta1": ok}}, "v1beta1", nil, []string{"v1", "v1beta1", "v1beta1"}},
		{"an error says nothing of the version", []served{{"v1": unavailable, "v1beta1": ok}, {"v1": ok, "v1beta1": ok}}, "v1", nil, []string{"v1", "v1"}},
		{"no version", []served{{}}, "", []string{"storage.k8s.io/v1: ", "storage.k8s.io/v1beta1: ", "could not find"}, []string{"v1", "v1beta1"}},
		{"no permission", []served{{"v1": forbidden, "v1beta1": forbidden}}, "", []string{"storage.k8s.io/v1: ", "storage.k8s.io/v1beta1: "}, []string{"v1", "v1beta1"}},
	} {
		for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			t.Run(tt.name+", "+contentType, func(t *testing.T) {
				lw, server := served23(t, contentType)
				var list runtime.Object
				var err error
				for _, codes := range tt.servers {
					server.set(codes)
					list, err = lw.List(metav1.ListOptions{})
				}
				for _, text := range tt.wantErr {
					if err == nil || !strings.Contains(err.Error(), text) {
						t.Errorf("error %v, want one with %q", err, text)
					}
				}
				if tt.wantErr == nil {
					if err != nil {
						t.Fatal(err)
					}
					want := *capacity(tt.want)
					if got := list.(*storagev1beta1.CSIStorageCapacityList); got.ResourceVersion != "5" || !reflect.DeepEqual(got.Items, []storagev1beta1.CSIStorageCapacity{want}) {
						t.Errorf("listed %v, want %v", got, want)
					}
					events, err := lw.Watch(metav1.ListOptions{ResourceVersion: "5"})
					if err != nil {
						t.Fatal(err)
					}
					defer events.Stop()
					if got := <-events.ResultChan(); got.Type != watch.Added || !reflect.DeepEqual(got.Object, &want) {
						t.Errorf("watched %v, want %v", got, want)
					}
				}
				if !reflect.DeepEqual(server.requests, tt.requests) {
					t.Errorf("requests %v, want %v", server.requests, tt.requests)
				}
			})
		}
	}
}

// A fake client has no servers: its objects are those of v1beta1.
func TestFakeClient(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(capacity("one")), 0)
	if err := Register(factory, &rest.Config{}); err != nil {
		t.Fatal(err)
	}
	lister := factory.Storage().V1beta1().CSIStorageCapacities().Lister()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	if _, err := lister.CSIStorageCapacities("kube-system").Get("one"); err != nil {
		t.Error(err)
	}
}
