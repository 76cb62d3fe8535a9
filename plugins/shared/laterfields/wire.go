// SPDX-License-Identifier: Apache-2.0

package laterfields

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// later has the fields of a pod that the types of 1.23 lack, at their places, and no others. The tags have the number
// of a field in protobuf and its key in JSON.
type later struct {
	Spec struct {
		Containers      []laterContainer        `json:"containers" protobuf:"2"`
		InitContainers  []laterContainer        `json:"initContainers" protobuf:"20"`
		Spread          []laterSpread           `json:"topologySpreadConstraints" protobuf:"33"`
		HostUsers       *bool                   `json:"hostUsers" protobuf:"37"`
		Gates           []named                 `json:"schedulingGates" protobuf:"38"`
		ResourceClaims  []isSet                 `json:"resourceClaims" protobuf:"39"`
		Resources       v1.ResourceRequirements `json:"resources" protobuf:"40"`
		WorkloadRef     isSet                   `json:"workloadRef" protobuf:"42"`
		SchedulingGroup isSet                   `json:"schedulingGroup" protobuf:"43"`
	} `json:"spec" protobuf:"2"`
	Status struct {
		Containers         []laterUse              `json:"containerStatuses" protobuf:"8"`
		InitContainers     []laterUse              `json:"initContainerStatuses" protobuf:"10"`
		AllocatedResources v1.ResourceList         `json:"allocatedResources" protobuf:"19"`
		Resources          v1.ResourceRequirements `json:"resources" protobuf:"20"`
		Claims             []laterClaim            `json:"nodeAllocatableResourceClaimStatuses" protobuf:"21"`
	} `json:"status" protobuf:"3"`
}

type named struct {
	Name string `json:"name" protobuf:"1"`
}

type laterContainer struct {
	VolumeMounts []struct {
		BindMountOptions []string `json:"bindMountOptions" protobuf:"8"`
	} `json:"volumeMounts" protobuf:"9"`
	RestartPolicy string `json:"restartPolicy" protobuf:"24"`
	RestartRules  []struct {
		Action string `json:"action" protobuf:"1"`
	} `json:"restartPolicyRules" protobuf:"25"`
}

type laterSpread struct {
	MinDomains         int32    `json:"minDomains" protobuf:"5"`
	NodeAffinityPolicy string   `json:"nodeAffinityPolicy" protobuf:"6"`
	NodeTaintsPolicy   string   `json:"nodeTaintsPolicy" protobuf:"7"`
	MatchLabelKeys     []string `json:"matchLabelKeys" protobuf:"8"`
}

type laterUse struct {
	AllocatedResources v1.ResourceList         `json:"allocatedResources" protobuf:"10"`
	Resources          v1.ResourceRequirements `json:"resources" protobuf:"11"`
}

// laterClaim is what devices take of a node's CPU and memory: Resources in 1.36, Mapping and Overhead since 1.37.
type laterClaim struct {
	Containers []string        `json:"containers" protobuf:"2"`
	Resources  v1.ResourceList `json:"resources" protobuf:"3"`
	Mapping    []struct {
		Name     v1.ResourceName   `json:"name" protobuf:"1"`
		Quantity resource.Quantity `json:"quantity" protobuf:"2"`
	} `json:"mapping" protobuf:"4"`
	Overhead []struct {
		Name         v1.ResourceName   `json:"name" protobuf:"1"`
		PerPod       resource.Quantity `json:"perPod" protobuf:"2"`
		PerContainer resource.Quantity `json:"perContainer" protobuf:"3"`
	} `json:"overhead" protobuf:"5"`
}

// MayBeIn reports whether the JSON of which a pod was decoded may have later fields. Most pods of a snapshot have none,
// and are not decoded again.
func MayBeIn(data []byte, pod *v1.Pod) bool {
	// resources is the number in the text without those that the pod has.
	resources := 0
	count := func(r v1.ResourceRequirements) {
		if len(r.Requests)+len(r.Limits) > 0 {
			resources--
		}
	}
	for i := range pod.Spec.Containers {
		count(pod.Spec.Containers[i].Resources)
	}
	for i := range pod.Spec.InitContainers {
		count(pod.Spec.InitContainers[i].Resources)
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Ephemeral != nil && volume.Ephemeral.VolumeClaimTemplate != nil {
			count(volume.Ephemeral.VolumeClaimTemplate.Spec.Resources)
		}
	}
	// Keys with escaped letters are not found.
	if hasLaterToleration(nil, pod) || bytes.Contains(data, []byte(`\u00`)) {
		return true
	}
	// A key is the text between two quotation marks.
	for {
		end := bytes.IndexByte(data, '"')
		if end < 0 {
			return resources > 0
		}
		key := data[:end]
		data = data[end+1:]
		switch string(key) {
		case "schedulingGates", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys", "resourceClaims", "hostUsers",
			"workloadRef", "schedulingGroup", "restartPolicyRules", "bindMountOptions", "allocatedResources",
			"nodeAllocatableResourceClaimStatuses":
			return true
		case "restartPolicy":
			if len(pod.Spec.InitContainers) > 0 {
				return true
			}
		case "resources":
			if !bytes.HasPrefix(data, []byte(":{}")) {
				resources++
			}
		}
	}
}

// isSet reports whether a field is set whose content does not matter: null and an empty message are not.
type isSet bool

// Unmarshal reads a message of protobuf.
func (s *isSet) Unmarshal(message []byte) error {
	*s = *s || len(message) > 0
	return nil
}

// UnmarshalJSON reads an object of JSON.
func (s *isSet) UnmarshalJSON(data []byte) error {
	var object map[string]interface{}
	err := json.Unmarshal(data, &object)
	*s = len(object) > 0
	return err
}

// numbered is a field of a message: its index in the Go type, and the fields of a message that has to be looked into.
type numbered struct {
	index  int
	fields map[protowire.Number]numbered
}

type unmarshaler interface{ Unmarshal([]byte) error }

var (
	podFields     = fieldsOf(reflect.TypeOf(later{}))
	errUnreadable = errors.New("malformed")
)

func fieldsOf(t reflect.Type) map[protowire.Number]numbered {
	fields := map[protowire.Number]numbered{}
	for i := 0; i < t.NumField(); i++ {
		number, _ := strconv.Atoi(t.Field(i).Tag.Get("protobuf"))
		field, of := numbered{index: i}, t.Field(i).Type
		if of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if _, leaf := reflect.New(of).Interface().(unmarshaler); of.Kind() == reflect.Struct && !leaf {
			field.fields = fieldsOf(of)
		}
		fields[protowire.Number(number)] = field
	}
	return fields
}

// read sets the fields of a struct from a message. Without a struct it reports whether there is any, and allocates
// nothing. It does not follow groups: Kubernetes has none, and the wire's own reader follows them without a limit.
func read(b []byte, fields map[protowire.Number]numbered, into reflect.Value) (bool, error) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind == protowire.StartGroupType {
			return false, errUnreadable
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return false, errUnreadable
		}
		value := b[:n]
		b = b[n:]
		field, known := fields[number]
		if known && into.IsValid() {
			if err := set(into.Field(field.index), kind, value, field.fields); err != nil {
				return false, err
			}
		} else if known && (field.fields == nil || kind != protowire.BytesType) {
			return true, nil
		} else if known {
			message, _ := protowire.ConsumeBytes(value)
			if any, err := read(message, field.fields, into); any || err != nil {
				return any, err
			}
		}
	}
	return false, nil
}

func set(field reflect.Value, kind protowire.Type, value []byte, fields map[protowire.Number]numbered) error {
	if field.Kind() == reflect.Slice {
		field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
		return set(field.Index(field.Len()-1), kind, value, fields)
	}
	varint, isVarint := protowire.ConsumeVarint(value)
	bytes, isBytes := protowire.ConsumeBytes(value)
	message, leaf := field.Addr().Interface().(unmarshaler)
	switch k := field.Kind(); {
	case kind == protowire.VarintType && isVarint > 0 && k == reflect.Int32:
		field.SetInt(int64(int32(varint)))
	case kind == protowire.VarintType && isVarint > 0 && k == reflect.Ptr:
		field.Set(reflect.New(field.Type().Elem()))
		field.Elem().SetBool(varint != 0)
	case kind != protowire.BytesType || isBytes < 0:
		return errUnreadable
	case leaf:
		return message.Unmarshal(bytes)
	case k == reflect.Struct:
		_, err := read(bytes, fields, field)
		return err
	case k == reflect.String:
		field.SetString(string(bytes))
	case k == reflect.Map:
		// An entry of a ResourceList is one of the field 1 of ResourceRequirements too.
		entry := v1.ResourceRequirements{Limits: field.Interface().(v1.ResourceList)}
		err := entry.Unmarshal(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), bytes))
		field.Set(reflect.ValueOf(entry.Limits))
		return err
	}
	return nil
}
