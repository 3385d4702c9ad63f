"""Imports MosaicML's streaming library without torch and the clients of clouds, which writing and reading shards on a disk need nothing of:
where they are not installed, modules without content stand in for them.

    pip install --no-deps mosaicml-streaming==0.13.0
    pip install 'numpy<2.2' 'xxhash<4' pillow Brotli python-snappy zstd tqdm requests catalogue filelock typing_extensions
"""
import importlib.machinery
import sys
import types


class StandIn:
    names = ("torch", "torchvision", "transformers", "boto3", "botocore", "azure", "google", "oci", "databricks", "paramiko", "huggingface_hub", "psutil")

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []

        def attribute(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

        module.__getattr__ = attribute
        return module

    def exec_module(self, module):
        pass


sys.meta_path.append(StandIn())  # asked last: what is installed is found before

from streaming.base.format.mds.reader import MDSReader  # noqa: E402
from streaming.base.format.mds.writer import MDSWriter  # noqa: E402
