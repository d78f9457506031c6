"""Stand-ins for PyTorch's inference tensors, which have no version to count a write by."""

from typing import Any


def kind(base: type) -> type:
    """A type of tensors, ``base`` with what PyTorch says of an inference tensor. ``inference`` says whether one is."""

    class Inference(base):
        inference = False

        @property
        def _version(self) -> int:
            if self.inference:
                raise RuntimeError("Inference tensors do not track version counter.")
            return 0

        @_version.setter
        def _version(self, version: Any) -> None:
            raise AttributeError

        def is_inference(self) -> bool:
            return self.inference

    return Inference
